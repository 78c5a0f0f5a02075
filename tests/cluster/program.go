package cluster

import (
	"os"
	"os/exec"
	"path/filepath"
)

// Run starts another program beside the server, as the server's user, with these files in a folder of its own, which is its
// working folder. What it prints is in the folder's file "output". stop ends it.
func (c *Cluster) Run(folder string, files map[string]string, program string, args ...string) (stop func(), err error) {
	dir := filepath.Join(c.Dir, folder)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	for name, text := range files {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			return nil, err
		}
		if err := os.Chown(file, c.owner, -1); err != nil {
			return nil, err
		}
	}
	if err := os.Chown(dir, c.owner, -1); err != nil {
		return nil, err
	}
	out, err := os.Create(filepath.Join(dir, "output"))
	if err != nil {
		return nil, err
	}
	defer func() { _ = out.Close() }()
	cmd := exec.Command(program, args...)
	cmd.SysProcAttr, cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = c.attr, c.env, dir, out, out
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }, nil
}

// FreePort is a port of 127.0.0.1 that nobody listens on now.
func FreePort() (int, error) { return freePort() }
