package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"aidb/tests/fakemodel"
)

// chosen is the model that the demo talks to.
type chosen struct {
	name, url, key, description string
	stop                        func()
}

// credentials is the argument of create_model: a local server needs none.
func (m *chosen) credentials() map[string]any {
	if m.key == "" {
		return map[string]any{}
	}
	return map[string]any{"api_key": m.key}
}

func chooseModel(ctx context.Context) (*chosen, error) {
	base, key, name := os.Getenv("OPENAI_BASE_URL"), os.Getenv("OPENAI_API_KEY"), os.Getenv("OPENAI_MODEL")
	if base == "" && key == "" {
		return scripted()
	}
	if base == "" {
		base = "https://api.openai.com/v1"
	}
	base = strings.TrimRight(base, "/")
	if name == "" {
		var err error
		if name, err = firstModel(ctx, base, key); err != nil {
			return nil, fmt.Errorf("OPENAI_MODEL is not set, and asking %s which models it has failed: %w", base, err)
		}
	}
	return &chosen{name: name, url: base, key: key, stop: func() {},
		description: fmt.Sprintf("%s at %s (from OPENAI_BASE_URL, OPENAI_MODEL)", name, base)}, nil
}

func scripted() (*chosen, error) {
	server, err := fakemodel.Start(fakemodel.Options{Default: fakemodel.Explorer})
	if err != nil {
		return nil, err
	}
	return &chosen{name: "explorer", url: server.URL(), key: "not-a-secret", stop: server.Close,
		description: "this repository's scripted OpenAI-compatible server, " + server.URL() +
			"\n          (no language model: it explores by rule; set OPENAI_BASE_URL, OPENAI_API_KEY, OPENAI_MODEL for a real one)"}, nil
}

// firstModel asks a server for its models and takes the first, which for a local server is the one it has loaded.
func firstModel(ctx context.Context, base, key string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/models", nil)
	if err != nil {
		return "", err
	}
	if key != "" {
		request.Header.Set("Authorization", "Bearer "+key)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }()
	var list struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if err := json.NewDecoder(http.MaxBytesReader(nil, response.Body, 4<<20)).Decode(&list); err != nil {
		return "", fmt.Errorf("HTTP %d: %w", response.StatusCode, err)
	}
	if len(list.Data) == 0 {
		return "", fmt.Errorf("HTTP %d and no model in the list", response.StatusCode)
	}
	return list.Data[0].ID, nil
}
