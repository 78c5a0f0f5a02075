package wire

import (
	"errors"

	"aidb/extension/internal/fault"
)

// CannotBeUsed says of which model the error is, that it cannot be opened.
func CannotBeUsed(model string, err error) error {
	hint := ""
	var f *fault.Error
	if errors.As(err, &f) {
		hint = f.Hint
	}
	return fault.Wrap(err, fault.KindOf(err), "model %s cannot be used: %s", fault.Name(model), err).WithHint("%s", hint)
}
