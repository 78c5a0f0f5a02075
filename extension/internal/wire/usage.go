package wire

import (
	"math"
	"strconv"
	"strings"

	"aidb/extension/internal/conversation"
)

// Usage holds the counts by the provider's names; nil is unknown.
type Usage struct{ Input, Output, Total, Cached, Reasoning *int64 }

// Tokens returns the counts in our terms. Thinking is output although some providers count it in the total only.
func (u Usage) Tokens() conversation.Usage {
	out := u.Output
	if u.Total != nil && u.Input != nil && (out == nil || *u.Total-*u.Input > *out) && *u.Total >= *u.Input {
		n := *u.Total - *u.Input
		out = &n
	}
	return conversation.Usage{Input: u.Input, Output: out, Cached: u.Cached, Reasoning: u.Reasoning}
}

func (u *Usage) Read(s *Scanner) error {
	return s.Object(func(key string) error {
		switch key {
		case "prompt_tokens", "input_tokens":
			return Count(s, &u.Input)
		case "completion_tokens", "output_tokens":
			return Count(s, &u.Output)
		case "total_tokens":
			return Count(s, &u.Total)
		case "prompt_cache_hit_tokens":
			return Count(s, &u.Cached)
		case "prompt_tokens_details", "input_tokens_details", "completion_tokens_details", "output_tokens_details":
			if s.Peek() == '{' {
				return s.Object(func(key string) error {
					switch key {
					case "cached_tokens":
						return Count(s, &u.Cached)
					case "reasoning_tokens":
						return Count(s, &u.Reasoning)
					}
					_, err := s.Skip()
					return err
				})
			}
		}
		_, err := s.Skip()
		return err
	})
}

// Count reads a number of tokens, which may come as a float or in a string. What is no count is unknown.
func Count(s *Scanner, to **int64) error {
	raw, err := s.Skip()
	if err != nil {
		return err
	}
	digits := strings.TrimSpace(strings.Trim(string(raw), `"`))
	if n, bad := strconv.ParseInt(digits, 10, 64); bad == nil && n >= 0 {
		*to = &n
		return nil
	}
	if f, bad := strconv.ParseFloat(digits, 64); bad == nil && f >= 0 && f < 1<<53 && f == math.Trunc(f) {
		n := int64(f)
		*to = &n
	}
	return nil
}

// Fold takes over the counts that another part of the reply has.
func (u *Usage) Fold(c Usage) {
	for _, p := range []struct {
		to   **int64
		from *int64
	}{{&u.Input, c.Input}, {&u.Output, c.Output}, {&u.Total, c.Total}, {&u.Cached, c.Cached}, {&u.Reasoning, c.Reasoning}} {
		if p.from != nil {
			*p.to = p.from
		}
	}
}
