package allocmodel

import "fmt"

// train writes a training run: parameters, then steps of forward, backward and optimizer with
// lengths that vary, and now and then an evaluation, a collective in a stream of its own, a
// captured graph, a tensor that is kept by mistake.
func (b *builder) train(n int) {
	r := b.r
	layers := 2 + r.IntN(4)
	weight := between(r, 1<<18, 24<<20)
	act := between(r, 1<<16, 16<<20)
	varying, keepGrads := chance(r, .6), chance(r, .4)
	leak, eval, flush := chance(r, .25), chance(r, .4), chance(r, .25)
	var grads, states []int
	var sizes []int64
	for range layers {
		for _, s := range []int64{weight, weight / 3, 4096} {
			b.alloc(s, 0, stackLoad)
			sizes = append(sizes, s)
		}
	}
	for step := 0; len(b.ops) < n; step++ {
		name := fmt.Sprintf("ProfilerStep#%d", step)
		b.do(Op{Kind: StepStart, Name: name})
		length := act
		if varying {
			length = act/4 + r.Int64N(act)
		}
		saved := b.forward(layers, length)
		if len(grads) == 0 {
			for _, s := range sizes {
				grads = append(grads, b.alloc(s, 0, stackBackward))
			}
		}
		b.backward(saved, length, grads, sizes)
		if len(states) == 0 {
			for _, s := range sizes {
				states = append(states, b.alloc(s, 0, stackOptimizer), b.alloc(s, 0, stackOptimizer))
			}
		}
		for _, s := range sizes {
			b.free(b.alloc(s, 0, stackOptimizer), stackFree)
		}
		if !keepGrads {
			for _, g := range grads {
				b.free(g, stackFree)
			}
			grads = nil
		}
		if leak {
			b.alloc(between(r, 512, act), 0, stackForward)
		}
		b.do(Op{Kind: StepEnd, Name: name})
		if eval && step%2 == 1 {
			b.evaluate(layers, act+act/2)
			if flush {
				b.do(Op{Kind: EmptyCache})
			}
		}
		if b.pools && chance(r, .3) {
			b.capture(stackForward)
		}
		if chance(r, .1) {
			b.do(Op{Kind: Snapshot})
		}
	}
}

func (b *builder) forward(layers int, length int64) []int {
	var saved []int
	saved = append(saved, b.alloc(max(8, length/64), 0, stackForward))
	for range layers {
		t := b.alloc(length*3, 0, stackForward)
		saved = append(saved, b.alloc(length, 0, stackForward))
		if chance(b.r, .5) {
			saved = append(saved, b.alloc(max(1, length/2), 0, stackForward))
		}
		b.free(t, stackFree)
	}
	return append(saved, b.alloc(length*4, 0, stackForward), b.alloc(4, 0, stackForward))
}

func (b *builder) backward(saved []int, length int64, grads []int, sizes []int64) {
	for i := len(saved) - 1; i >= 0; i-- {
		t := b.alloc(length, 0, stackBackward)
		b.free(saved[i], stackFree)
		if b.streams > 1 && chance(b.r, .4) {
			// a bucket of gradients, reduced in another stream
			k := b.alloc(sizes[i%len(sizes)], 0, stackComm)
			if b.uses {
				b.do(Op{Kind: Use, ID: k, Stream: Stream(1)})
			}
			b.free(k, stackFree)
			c := b.alloc(sizes[i%len(sizes)]/2+1, 1, stackComm)
			if chance(b.r, .5) {
				b.done(1)
			}
			b.free(c, stackFree)
		}
		b.free(t, stackFree)
	}
}

func (b *builder) evaluate(layers int, length int64) {
	var prev int
	for i := range layers {
		x := b.alloc(length, 0, stackEval)
		t := b.alloc(length*2, 0, stackEval)
		b.free(t, stackFree)
		if i > 0 {
			b.free(prev, stackFree)
		}
		prev = x
	}
	b.free(prev, stackFree)
}
