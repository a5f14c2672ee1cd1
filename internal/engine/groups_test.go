package engine_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestGroups reads time-outs of two process groups: who is behind is so in its
// own group, and a silent rank is missing from none of several.
func TestGroups(t *testing.T) {
	var b strings.Builder
	line := func(rank int, group string, in, seq int) {
		fmt.Fprintf(&b, "[rank%d]:[E1102 02:19:4%d.500112009 ProcessGroupNCCL.cpp:689] [PG ID 1 PG GUID %s Rank %d] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=%d, OpType=ALLREDUCE, NumelIn=640, NumelOut=640, Timeout(ms)=600000) ran for 600002 milliseconds before timing out.\n", rank, rank, group, in, seq)
	}
	for r := range 4 {
		line(r, "1(dp)", r, 900)
	}
	for r, seq := range []int{50, 50, 50, 49} {
		line(4+r, "2(tp)", r, seq)
	}
	inc := log(t, b.String())
	if len(inc.Groups) != 2 {
		t.Fatalf("groups: %+v", inc.Groups)
	}
	dp, tp := inc.Groups[0], inc.Groups[1]
	if !slices.Equal(dp.Members, []int{0, 1, 2, 3}) || len(dp.Behind) > 0 || len(dp.Missing) > 0 {
		t.Errorf("dp: %+v", dp)
	}
	if !slices.Equal(tp.Members, []int{4, 5, 6, 7}) || !slices.Equal(tp.Behind, []int{7}) || len(tp.Missing) > 0 {
		t.Errorf("tp: %+v", tp)
	}
}
