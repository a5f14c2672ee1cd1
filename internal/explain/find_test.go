package explain

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// TestNothingFound: of what is no failure of a training run, no match is sure, whatever
// words stand in it by chance.
func TestNothingFound(t *testing.T) {
	x, err := NewIndex(full(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range []string{
		"", " \n\t", "?", "...", "qqqqzzzz", "asdf jkl", "the of and", "12345 67890", "\x00\xff\xfe", "🙂🙂🙂",
		"how do I bake bread without yeast", "weather in Lisbon tomorrow", "who won the cup final", "lorem ipsum dolor sit amet consectetur",
		"translate this letter to French please", "best hiking trails near the lake", "my cat sleeps all day", "guten Morgen, wie geht es dir",
		"今天天气怎么样", "おすすめのレストラン", "как приготовить борщ", "오늘 저녁 뭐 먹지", "quelle heure est-il à Paris", "receta de tortilla de patatas",
		strings.Repeat("na ", 40000), strings.Repeat("\u202e", 1000), strings.Repeat("字", 30000),
	} {
		for _, m := range x.Find(q) {
			if m.Sure {
				t.Errorf("%.40q: sure of %s: %s (%.1f)", q, m.ID, m.Why, m.Score)
			}
		}
	}
}

func TestTranslate(t *testing.T) {
	for _, f := range []struct{ text, want string }{
		{"显存不足", "gpu out of memory"},
		{"loss变成nan怎么办", "loss nan 怎么办"},
		{"ＣＵＤＡ　out", "cuda out"},
		{"Lernrate zu hoch", "learning rate too high"},
		{"GPU-Speicher", "gpu-memory"},
		{"Speicherstick", "speicherstick"}, // begins like a word and is another
		{"обучения", "training"},
		{"장치에 남은 공간이 없음", "OSError errno 28 no space left on device"},
		{"CUDA out of memory", "cuda out of memory"},
		{"", ""},
	} {
		if got := strings.Join(strings.Fields(translate(f.text)), " "); strings.ReplaceAll(got, "- ", "-") != f.want {
			t.Errorf("%q is %q, want %q", f.text, got, f.want)
		}
	}
	for _, list := range tongues() {
		for _, p := range list {
			if got := strings.TrimSpace(translate(strings.ReplaceAll(p.text, "*", ""))); got != p.english {
				t.Errorf("%q is %q, not %q", p.text, got, p.english)
			}
		}
	}
}

func FuzzFind(f *testing.F) {
	x, err := NewIndex(full(f))
	if err != nil {
		f.Fatal(err)
	}
	for _, p := range phrasings(f) {
		f.Add(p.Query)
	}
	f.Fuzz(func(t *testing.T, query string) {
		for i, m := range x.Find(query) {
			if m.ID == "" || m.Why == "" || !(m.Score > 0) || !utf8.ValidString(m.Why) && utf8.ValidString(query) {
				t.Errorf("match %d: %+v", i, m)
			}
		}
	})
}

func BenchmarkFind(b *testing.B) {
	x, err := NewIndex(full(b))
	if err != nil {
		b.Fatal(err)
	}
	list := phrasings(b)
	for b.Loop() {
		for _, p := range list {
			x.Find(p.Query)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*len(list)), "µs/query")
}
