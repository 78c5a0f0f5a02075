package openai

import (
	"math"
	"strconv"
	"strings"

	"aidb/extension/internal/conversation"
)

// usage holds the counts by the provider's names; nil is unknown.
type usage struct{ input, output, total, cached, reasoning *int64 }

// tokens returns the counts in our terms. Thinking is output although some providers count it in the total only.
func (u usage) tokens() conversation.Usage {
	out := u.output
	if u.total != nil && u.input != nil && (out == nil || *u.total-*u.input > *out) && *u.total >= *u.input {
		n := *u.total - *u.input
		out = &n
	}
	return conversation.Usage{Input: u.input, Output: out, Cached: u.cached, Reasoning: u.reasoning}
}

func (u *usage) read(s *scanner) error {
	return s.object(func(key string) error {
		switch key {
		case "prompt_tokens", "input_tokens":
			return count(s, &u.input)
		case "completion_tokens", "output_tokens":
			return count(s, &u.output)
		case "total_tokens":
			return count(s, &u.total)
		case "prompt_cache_hit_tokens":
			return count(s, &u.cached)
		case "prompt_tokens_details", "input_tokens_details", "completion_tokens_details", "output_tokens_details":
			if s.peek() == '{' {
				return s.object(func(key string) error {
					switch key {
					case "cached_tokens":
						return count(s, &u.cached)
					case "reasoning_tokens":
						return count(s, &u.reasoning)
					}
					_, err := s.skip()
					return err
				})
			}
		}
		_, err := s.skip()
		return err
	})
}

// count reads a number of tokens, which may come as a float or in a string. What is no count is unknown.
func count(s *scanner, to **int64) error {
	raw, err := s.skip()
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
