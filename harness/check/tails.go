package check

import "gonum.org/v1/gonum/mathext"

// alpha is the probability with which a statistical rule may flag a good client, for a whole run.
const alpha = 1e-6

// upperTail returns P(Bin(n, p) ≥ c), exactly, by the incomplete beta function.
func upperTail(n, c int, p float64) float64 {
	switch {
	case c <= 0:
		return 1
	case c > n || p <= 0:
		return 0
	case p >= 1:
		return 1
	}
	return mathext.RegIncBeta(float64(c), float64(n-c+1), p)
}

// lowerTail returns P(Bin(n, p) ≤ c).
func lowerTail(n, c int, p float64) float64 { return upperTail(n, n-c, 1-p) }
