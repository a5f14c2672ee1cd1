package cli

import (
	"flag"
	"fmt"
	"os"
	"time"
)

// trainer is a training that fails when its batch does not fit, as a program of its own for
// scripts, on any system: what it may hold is a number, and what it prints where that is not
// enough is what PyTorch prints of memory that the system refuses. Trainings for which memory
// really runs out are in scripts/proof.
func trainer() {
	batch := flag.Int("batch-size", 4, "samples of a step, of 64 MiB each")
	accum := flag.Int("grad-accum", 1, "micro-batches of a step")
	steps := flag.Int("steps", 30, "")
	room := flag.Int("room", 9, "samples that fit")
	flag.Parse()
	_ = accum
	for i := 1; i <= *steps; i++ {
		if *batch > *room && i > 2 {
			fmt.Fprintf(os.Stderr, "Traceback (most recent call last):\n  File \"train.py\", line 40, in step\n    h = torch.relu(x @ w)\n"+
				"RuntimeError: [enforce fail at alloc_cpu.cpp:121] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to allocate %d bytes. Error code 12 (Cannot allocate memory)\n", *batch<<26)
			os.Exit(1)
		}
		fmt.Printf("step %d loss %.4f grad_norm 1.0000 lr 0.01 rss_mib %d\n", i, 3/float64(i), 64**batch)
		time.Sleep(10 * time.Millisecond)
	}
	fmt.Println("training completed")
}
