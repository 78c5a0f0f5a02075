// Package secretfile reads secrets that an orchestrator mounts as files. Which paths may be read is decided by the
// server's setting aidb.k8s_secret_allowed_path_prefix before a path gets here.
package secretfile

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"

	"aidb/extension/internal/fault"
	"aidb/extension/internal/smallfile"
)

// maxSize bounds a secret file; a key is far shorter.
const maxSize = 64 << 10

// Read returns the text of a file (a bare key, or a JSON object), or, of a directory with the files username and
// password, the JSON object {"basic_auth": "username:password"}. Errors name the path and never its contents.
func Read(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", unreadable(path)
	}
	if !info.IsDir() {
		return readFile(path)
	}
	user, err := readFile(filepath.Join(path, "username"))
	if err != nil {
		return "", err
	}
	password, err := readFile(filepath.Join(path, "password"))
	if err != nil {
		return "", err
	}
	object, err := json.Marshal(map[string]string{"basic_auth": user + ":" + password})
	if err != nil {
		return "", unreadable(path)
	}
	return string(object), nil
}

func readFile(path string) (string, error) {
	b, err := smallfile.Read(path, maxSize)
	if err != nil {
		return "", unreadable(path)
	}
	return strings.TrimSpace(string(b)), nil
}

func unreadable(path string) error {
	return fault.New(fault.NotFound, "secret file %s cannot be read by the server", fault.Name(path))
}
