package num

import (
	"math"
	"testing"
)

func TestRatIsExactAndImmutable(t *testing.T) {
	third := Frac(1, 3)
	sum := third.Add(third).Add(third)
	if sum.Cmp(Int[Rat](1)) != 0 || third.String() != "1/3" {
		t.Fatalf("1/3*3 = %v, operand now %v", sum, third)
	}
	var z Rat
	if z.Sign() != 0 || z.Add(third).Cmp(third) != 0 {
		t.Fatal("the zero value is not 0")
	}
	if r, ok := ParseRat("0.1"); !ok || r.Cmp(Frac(1, 10)) != 0 {
		t.Fatalf("0.1 parsed as %v", r)
	}
	if _, ok := ParseRat("x"); ok {
		t.Fatal("x parsed")
	}
	if r := third.FromFloat(0.375); r.Cmp(Frac(3, 8)) != 0 {
		t.Fatalf("0.375 became %v", r)
	}
}

func TestFloatComparesWithTolerance(t *testing.T) {
	sum := Float(0)
	for range 10 {
		sum = sum.Add(0.1)
	}
	if sum.Cmp(1) != 0 {
		t.Fatalf("ten tenths differ from one: %g", float64(sum)-1)
	}
	if Float(1).Cmp(1+1e-8) != -1 || Float(1+1e-8).Cmp(1) != 1 {
		t.Fatal("1e-8 apart must differ")
	}
	if inf := Float(math.Inf(1)); Float(1).Cmp(inf) != -1 || inf.Cmp(1) != 1 || inf.Cmp(inf) != 0 {
		t.Fatal("infinity compares wrongly")
	}
	if Max(Float(2), Float(3)) != 3 || Max(Frac(1, 2), Frac(1, 3)).String() != "1/2" {
		t.Fatal("Max")
	}
}
