package redact

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// planted are what the lines of testdata/planted.txt hold. All are generated here, and what a
// scanner of secrets knows is put together from pieces.
func planted() map[string]string {
	seed := uint64(7)
	from := func(alphabet string, n int) string {
		var b strings.Builder
		for range n {
			seed = seed*6364136223846793005 + 1442695040888963407
			b.WriteByte(alphabet[int(seed>>33)%len(alphabet)])
		}
		return b.String()
	}
	const digits, low = "0123456789", "abcdefghijklmnopqrstuvwxyz"
	upper := strings.ToUpper(low)
	alnum := func(n int) string { return from(digits+low+upper, n-3) + "a1B" }
	b64 := from(digits+low+upper, 43) + "9a"
	return map[string]string{
		"hf": "h" + "f_" + alnum(34), "openai": "s" + "k-proj-" + alnum(40), "anthropic": "s" + "k-ant-api03-" + alnum(40),
		"hex32": from("0123456789abcdef", 31) + "7", "hex40": from("0123456789abcdef", 38) + "a7", "hex64": from("0123456789abcdef", 62) + "a7",
		"wandb": "wandb" + "_v1_" + alnum(40), "neptune": "ey" + "J" + alnum(90) + "==", "alnum": alnum(24), "word": "tr0ub4" + from(low, 5), "upper": from(upper, 25) + "Q7",
		"akia": "AK" + "IA" + from(upper+"234567", 16), "aws": from(low+upper+digits, 36) + "/a1B", "b64": b64, "b64url": alnum(30), "aiza": "AI" + "za" + alnum(35),
		"slack": "xo" + "xb-" + from(digits, 11) + "-" + alnum(24), "xapp": "xa" + "pp-1-" + alnum(30), "telegram": from("123456789", 9) + ":AA" + alnum(33),
		"ghp": "gh" + "p_" + alnum(36), "glpat": "gl" + "pat-" + alnum(20), "jwt": "ey" + "J" + alnum(20) + ".ey" + "J" + alnum(30) + "." + alnum(40),
		"ana": "anaqwert", "ANA": "ANAQWERT", "ben": "bzimmer2", "corp": "zorbcorp.com", "node": "zq-node017", "NODE": "ZQ-NODE017", "ip": "10.21.33.7", "ip6": "2001:db8:12::7f",
		"mac": "0c:42:a1:5b:9e:07", "hextet": "9a7f", "proj": "zebra_llm7", "run": "quokka-sweep-12", "acme": "zorblab",
		"esc": "\x1b", "prose": "Once upon a time a wombat went to the market", "wide": "昔々あるところに狐がいました",
	}
}

var placeholder = regexp.MustCompile(`\{(\w+)\}`)

// corpus are the lines of a file of testdata, comments left out.
func corpus(t testing.TB, name string) []string {
	t.Helper()
	b, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, l := range strings.Split(strings.TrimSuffix(string(b), "\n"), "\n") {
		if !strings.HasPrefix(l, "# ") && l != "" && !strings.HasPrefix(l, "in by") && !strings.HasPrefix(l, "away") {
			out = append(out, l)
		}
	}
	return out
}

// plant puts the values into a line and says which it holds.
func plant(line string, values map[string]string) (string, []string) {
	var used []string
	s := placeholder.ReplaceAllStringFunc(line, func(m string) string {
		v, ok := values[m[1:len(m)-1]]
		if !ok {
			return m
		}
		used = append(used, v)
		return v
	})
	return s, used
}

// TestPlanted takes every planted value out of a corpus that is learned as a whole, in every
// form: as it is, in capitals of names, behind a log's prefix, with CRLF, and wrapped.
func TestPlanted(t *testing.T) {
	values := planted()
	lines := corpus(t, "planted.txt")
	if len(lines) < 150 {
		t.Fatalf("%d lines", len(lines))
	}
	forms := map[string]func(string) string{
		"as it is": func(s string) string { return s },
		"prefixed": func(s string) string { return "[default3]:2026-01-02 03:04:05,678 INFO [trainer.py:12] " + s },
		"rank":     func(s string) string { return "[rank3]: " + s },
		"CRLF":     func(s string) string { return s + "\r" },
	}
	for _, form := range slices.Sorted(maps.Keys(forms)) {
		n := NewNames()
		n.Add(Host, values["node"])
		var texts []string
		var used [][]string
		for _, l := range lines {
			s, u := plant(l, values)
			texts, used = append(texts, forms[form](s)), append(used, u)
		}
		n.Learn(strings.Join(texts, "\n"))
		for i, s := range texts {
			got := n.Text(s)
			for _, v := range used[i] {
				if strings.Contains(strings.ToLower(got), strings.ToLower(v)) {
					t.Errorf("%s: %q is left\n   %s\n-> %s", form, v, s, got)
				}
			}
		}
	}
}

// TestAlone takes secrets out of each line by itself: they need no other line to be known.
func TestAlone(t *testing.T) {
	values := planted()
	for _, l := range corpus(t, "planted.txt") {
		s, _ := plant(l, values)
		n := NewNames()
		n.Learn(s)
		got := n.Text(s)
		for _, m := range placeholder.FindAllStringSubmatch(l, -1) {
			switch m[1] {
			case "ana", "ANA", "ben", "node", "NODE", "proj", "acme", "run", "corp":
				continue // names that the lines around give away
			}
			if v, ok := values[m[1]]; ok && strings.Contains(got, v) {
				t.Errorf("%q is left\n   %s\n-> %s", v, s, got)
			}
		}
	}
}

// TestHarmless checks that what says nothing of whose it is stays, by itself and beside the
// planted corpus.
func TestHarmless(t *testing.T) {
	values := planted()
	n := NewNames()
	for _, l := range corpus(t, "planted.txt") {
		s, _ := plant(l, values)
		n.Learn(s)
	}
	for _, s := range corpus(t, "harmless.txt") {
		n.Learn(s)
	}
	for _, s := range corpus(t, "harmless.txt") {
		if got := n.Text(s); got != s {
			t.Errorf("%s\n-> %s", s, got)
		}
	}
}

// TestWrapped breaks each long secret over two lines, as a narrow terminal does.
func TestWrapped(t *testing.T) {
	values := planted()
	for _, key := range []string{"hf", "openai", "ghp", "jwt", "hex40", "glpat"} {
		v := values[key]
		for _, name := range []string{"HF_TOKEN=", "export WANDB_API_KEY=", "2026-01-02 03:04:05 INFO the token in use is api_key="} {
			for _, cut := range []int{len(v) / 3, len(v) / 2, len(v) - 6} {
				n := NewNames()
				text := fmt.Sprintf("%s%s\n%s\nstep 1 loss 2", name+strings.Repeat(" ", 0), v[:cut], v[cut:])
				if len(name)+cut < 40 {
					continue // no terminal is so narrow
				}
				n.Learn(text)
				got := n.Text(text)
				if strings.Contains(got, v[:cut]) || strings.Contains(got, v[cut:]) || strings.Count(got, "\n") != 2 || !strings.HasSuffix(got, "step 1 loss 2") {
					t.Errorf("%q", got)
				}
			}
		}
	}
}

// TestBlock masks keys over many lines, and keeps the lines.
func TestBlock(t *testing.T) {
	body := planted()["b64"]
	for _, prefix := range []string{"", "[rank0]: ", "2026-01-02 03:04:05 INFO "} {
		for _, kind := range []string{"RSA PRIVATE KEY", "OPENSSH PRIVATE KEY", "PRIVATE KEY", "PGP PRIVATE KEY BLOCK"} {
			dash := "-----"
			text := prefix + dash + "BEGIN " + kind + dash + "\n" + strings.Repeat(prefix+body+body[:19]+"\n", 3) + prefix + body[:8] + "==\n" + prefix + dash + "END " + kind + dash + "\nstep 1 loss 2.0\n"
			n := NewNames()
			n.Learn(text)
			got := n.Text(text)
			if strings.Contains(got, body) || strings.Contains(got, body[:8]) || strings.Count(got, "\n") != strings.Count(text, "\n") || !strings.HasSuffix(got, "step 1 loss 2.0\n") {
				t.Errorf("%s", got)
			}
		}
	}
}

// TestNamed masks a value that stands on the line behind its name.
func TestNamed(t *testing.T) {
	v := planted()["alnum"]
	for _, text := range []string{"password: >-\n  " + v + "\nnext", "api_key: |\n  " + v, "export TOKEN=\\\n" + v, "\"api_key\":\n  \"" + v + "\""} {
		n := NewNames()
		n.Learn(text)
		if got := n.Text(text); strings.Contains(got, v) {
			t.Errorf("%q", got)
		}
	}
}

// TestTokens checks that tokens are the same whatever the order of the texts, that hosts keep
// theirs, and that the map has names and no secret.
func TestTokens(t *testing.T) {
	values := planted()
	a := []string{"hostname=gx10", "hostname=gx9", "hostname=gx1 user=anaqwert", "HF_TOKEN=" + values["hf"], "/home/anaqwert/zebra_llm7/x.py"}
	n, m := NewNames(), NewNames()
	for i := range a {
		n.Learn(a[i])
		m.Learn(a[len(a)-1-i])
	}
	for _, s := range a {
		if x, y := n.Text(s), m.Text(s); x != y {
			t.Errorf("%s: %s, %s", s, x, y)
		}
	}
	if got := n.Text("gx1 gx9 gx10"); got != "host-1 host-2 host-3" {
		t.Error(got)
	}
	for _, x := range n.Map() {
		if x.Original == values["hf"] || x.Kind == Secrets {
			t.Errorf("%+v", x)
		}
	}
}

func FuzzNames(f *testing.F) {
	values := planted()
	for _, l := range corpus(f, "planted.txt") {
		s, _ := plant(l, values)
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		one, two := NewNames(), NewNames()
		one.Learn(s)
		two.Learn(s)
		got := one.Text(s)
		if again := two.Text(s); again != got {
			t.Fatalf("%q: %q and %q", s, got, again)
		}
		if strings.Count(got, "\n") != strings.Count(s, "\n") {
			t.Fatalf("%q: lines became others: %q", s, got)
		}
		if len(got) > 16*len(s)+64 {
			t.Fatalf("grew from %d to %d", len(s), len(got))
		}
	})
}

// BenchmarkNames is one learning and one taking out of a training log with a planted line in
// fifty.
func BenchmarkNames(b *testing.B) {
	values := planted()
	lines := corpus(b, "planted.txt")
	harmless := corpus(b, "harmless.txt")
	var text strings.Builder
	for i := 0; text.Len() < 1<<20; i++ {
		if i%50 == 0 {
			s, _ := plant(lines[i/50%len(lines)], values)
			text.WriteString(s + "\n")
			continue
		}
		text.WriteString(harmless[i%len(harmless)] + "\n")
	}
	b.SetBytes(int64(text.Len()))
	for b.Loop() {
		n := NewNames()
		n.Learn(text.String())
		n.Text(text.String())
	}
}
