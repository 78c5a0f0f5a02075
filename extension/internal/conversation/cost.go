package conversation

import (
	"encoding/json"
	"math"
	"strconv"
)

// Cost is what one model call used: what the provider said, what was estimated where it said nothing, and the price.
type Cost struct {
	Usage Usage
	// Input and Output are the counts that budgets go by.
	Input, Output int64
	// Price is in Units; nil when the model has none.
	Price *int64
}

// Units is how many units of account make one unit of money. Prices are given for a million tokens, so this leaves six
// digits for the price of one token, and sums of them are exact.
const Units = 1_000_000_000_000

// Money writes an amount in units of account as a decimal number.
func Money(units int64) string {
	sign := ""
	if units < 0 {
		sign, units = "-", -units
	}
	s := sign + strconv.FormatInt(units/Units, 10)
	rest := units % Units
	if rest == 0 {
		return s
	}
	digits := strconv.FormatInt(Units+rest, 10)[1:]
	for digits[len(digits)-1] == '0' {
		digits = digits[:len(digits)-1]
	}
	return s + "." + digits
}

// Costed is a payload with what the model call cost: estimated, the counts that the provider did not give, and cost, where
// the model has a price.
func Costed(payload json.RawMessage, c Cost) json.RawMessage {
	in, out := guessed(c.Usage.Input, c.Input), guessed(c.Usage.Output, c.Output)
	if !in && !out && c.Price == nil {
		return payload
	}
	b := payload[: len(payload)-1 : len(payload)-1]
	if in || out {
		b = append(b, `,"estimated":{`...)
		if in {
			b = strconv.AppendInt(append(b, `"input":`...), c.Input, 10)
		}
		if out {
			if in {
				b = append(b, ',')
			}
			b = strconv.AppendInt(append(b, `"output":`...), c.Output, 10)
		}
		b = append(b, '}')
	}
	if c.Price != nil {
		b = append(append(b, `,"cost":`...), Money(*c.Price)...)
	}
	return append(b, '}')
}

// guessed reports whether a count is not what the provider said.
func guessed(said *int64, n int64) bool {
	if said == nil {
		return n > 0
	}
	return *said != n
}

// Amount turns an amount of money into units of account; what is no amount, or too much to be one, is none.
func Amount(money float64) (units int64, ok bool) {
	if !(money >= 0) || money >= maxAmount {
		return 0, false
	}
	return int64(math.Round(money * Units)), true
}

// maxAmount keeps amounts in units within an int64.
const maxAmount = 9e6
