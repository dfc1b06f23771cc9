package verify_test

import (
	"fmt"

	"github.com/stampede-exporter/stampede-exporter/internal/verify"
)

// Forty cycles of a hot key before single-flight, and forty after.
func ExampleCompare() {
	r, err := verify.Compare(verify.Input{
		Before: arm(40, 121, 110, 132),
		After:  arm(40, 5, 4, 6, 5),
		Delta:  func(uint64) float64 { return 0.4 },
	}, verify.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s: S %.2f -> %.3f\n", r.Verdict, r.Before.Coefficient, r.After.Coefficient)
	// Output: verified: S 1.00 -> 0.033
}
