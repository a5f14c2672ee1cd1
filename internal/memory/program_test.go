package memory_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/inquest-dev/inquest/internal/evidence"
	"github.com/inquest-dev/inquest/internal/incident"
	"github.com/inquest-dev/inquest/internal/memory"
	"github.com/inquest-dev/inquest/internal/testkit/allocmodel"
)

const mib = 1 << 20

// Places that allocate in the programs of the tests, as stacks.
const (
	places  = "/home/u/run/"
	library = "/opt/env/lib/python3.11/site-packages/"
)

// A program is a training script in the making.
type program struct {
	allocmodel.Program
	next    int
	stackOf map[string]uint32
	step    int
}

func newProgram() *program {
	return &program{Program: allocmodel.Program{Stacks: [][]uint32{nil}}, stackOf: map[string]uint32{}}
}

// newProgramOf is a program of some steps.
func newProgramOf(steps int) *program {
	p := newProgram()
	for range steps {
		p.train(true, nil, nil)
	}
	return p
}

// stack is one of a few kinds at a line of the script: forward, backward, optimizer,
// eval, load, plain.
func (p *program) stack(kind string, line int) uint32 {
	key := fmt.Sprint(kind, line)
	if s, ok := p.stackOf[key]; ok {
		return s
	}
	own := func(name string) evidence.MemFrame {
		return evidence.MemFrame{Name: name, File: places + "train.py", Line: line}
	}
	main := evidence.MemFrame{Name: "main", File: places + "train.py", Line: 900}
	call := evidence.MemFrame{Name: "_call_impl", File: library + "torch/nn/modules/module.py", Line: 1784}
	frames := map[string][]evidence.MemFrame{
		"forward":   {{Name: "forward", File: library + "torch/nn/modules/linear.py", Line: 125}, call, {Name: "forward", File: places + "model.py", Line: line}, call, main},
		"backward":  {{Name: "torch::autograd::generated::AddmmBackward0::apply(std::vector<at::Tensor>&&)", File: "??"}, {Name: "torch::autograd::Engine::thread_main(std::shared_ptr<torch::autograd::GraphTask> const&)", File: "??"}},
		"optimizer": {{Name: "_init_group", File: library + "torch/optim/adamw.py", Line: 133}, {Name: "wrapper", File: library + "torch/optim/optimizer.py", Line: 533}, own("train_step"), main},
		"eval":      {{Name: "forward", File: library + "torch/nn/modules/linear.py", Line: 125}, call, own("evaluate"), main},
		"load":      {{Name: "_load", File: library + "torch/serialization.py", Line: 2100}, {Name: "load", File: library + "torch/serialization.py", Line: 1500}, own("resume"), main},
		"plain":     {own("train_step"), main},
	}[kind]
	var s []uint32
	for _, f := range frames {
		s = append(s, uint32(len(p.Frames)))
		p.Frames = append(p.Frames, f)
	}
	p.stackOf[key] = uint32(len(p.Stacks))
	p.Stacks = append(p.Stacks, s)
	return p.stackOf[key]
}

func (p *program) alloc(size int64, kind string, line int) int {
	p.next++
	p.Ops = append(p.Ops, allocmodel.Op{Kind: allocmodel.Alloc, ID: p.next, Size: size, Stack: p.stack(kind, line)})
	return p.next
}

func (p *program) free(ids ...int) {
	for _, id := range ids {
		p.Ops = append(p.Ops, allocmodel.Op{Kind: allocmodel.Free, ID: id})
	}
}

// train runs a step: forward at five places, backward, an optimizer that makes its
// states in the first step; in the middle and at the end of it the script does more.
func (p *program) train(marked bool, middle, end func()) {
	name := fmt.Sprintf("ProfilerStep#%d", p.step)
	if marked {
		p.Ops = append(p.Ops, allocmodel.Op{Kind: allocmodel.StepStart, Name: name})
	}
	var acts []int
	for l := range 5 {
		acts = append(acts, p.alloc(8*mib, "forward", 10+l))
	}
	if middle != nil {
		middle()
	}
	for l := len(acts) - 1; l >= 0; l-- {
		g := p.alloc(4*mib, "backward", 0)
		p.free(acts[l], g)
	}
	if p.step == 0 {
		p.alloc(30*mib, "optimizer", 50)
	}
	p.free(p.alloc(6*mib, "optimizer", 50))
	if end != nil {
		end()
	}
	if marked {
		p.Ops = append(p.Ops, allocmodel.Op{Kind: allocmodel.StepEnd, Name: name})
	}
	p.step++
}

// snapshot is what is recorded of the program on a card of a capacity; 0: it never runs
// out.
func (p *program) snapshot(capacity int64) *evidence.MemSnapshot {
	if capacity == 0 {
		capacity = 1 << 42
	}
	run := allocmodel.Simulate(p.Ops, allocmodel.Default(), allocmodel.Device{Capacity: capacity}, allocmodel.Options{})
	m := run.Snapshot(&p.Program, allocmodel.SnapOptions{})
	m.Artifact = "test.pickle"
	return m
}

func examine(t *testing.T, m *evidence.MemSnapshot, o memory.Options) *incident.MemoryDevice {
	t.Helper()
	out, err := memory.Examine(context.Background(), m, o)
	if err != nil {
		t.Fatal(err)
	}
	if len(out.Devices) != 1 {
		t.Fatalf("%d devices", len(out.Devices))
	}
	return &out.Devices[0]
}

// cause is what is said of a fact: true, false, or unknown.
func cause(d *incident.MemoryDevice, fact string) string {
	for _, c := range d.Causes {
		if c.Fact == "snapshot."+fact {
			return fmt.Sprint(c.Value)
		}
	}
	return "unknown"
}
