package redact

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Kinds of what Names takes out.
const (
	Secrets = "secret"
	User    = "user"
	Host    = "host"
	Email   = "email"
	Address = "address" // of the network: IP and MAC
	Path    = "path"    // one segment of a path or of an address on the web
	Name    = "name"    // of a job, run, project, account
	Prose   = "text"    // prompts and samples of data
)

// Kinds are all kinds, in the order in which they are told.
var Kinds = []string{Secrets, User, Host, Email, Address, Path, Name, Prose}

// Names takes secrets and the names of people, machines, projects and places out of text that is
// to leave the machine, beside samples of data. The same name, in any case of letters, becomes the
// same token (user-1, host-3, path-7) in all texts of one Names; a secret becomes [masked] and has
// none.
//
// All texts are learned first, so that a name that one line gives away (a home folder, the host in
// a launcher's line) is found where it stands alone. Tokens are numbered in the natural order of
// the names, whatever the order of the texts: the same texts have the same tokens, and host-2 is
// the host behind host-1. Lines stay lines, and numbers, settings, shapes, code of well-known
// libraries, commits, versions and identifiers of devices stay as they are: a diagnosis of the
// text stays possible.
//
// What it cannot know: a name that stands alone wherever it stands, in no list that was given; and
// prose outside of fields that say that it is prose.
type Names struct {
	kinds    map[string]string // lower-case name -> kind; the name has that kind only
	spelling map[string]string // lower-case name -> as first seen
	tokens   map[string]string // lower-case name -> token, once numbered
	words    map[string]string // what is looked up in running text: lower-case word -> lower-case name
	next     map[string]int
	secrets  map[string]bool // values that were masked and would be known again
	hidden   *strings.Replacer
	learning bool
	counts   map[string]int
	used     map[string]bool // lower-case names that were taken out
	longest  int
	same     map[string]bool // lines in which nothing was found, in this state
}

// NewNames returns a Names that knows nothing yet.
func NewNames() *Names {
	return &Names{kinds: map[string]string{}, spelling: map[string]string{}, tokens: nil, words: map[string]string{}, next: map[string]int{}, secrets: map[string]bool{}, counts: map[string]int{}, used: map[string]bool{}, same: map[string]bool{}}
}

// Add makes known that name is of kind. Names that everybody has, and what is a number, stay.
// It has no effect once Text was called.
func (n *Names) Add(kind, name string) {
	name = strings.Trim(name, " \t\"'.,;")
	if n.tokens != nil || name == "" || len(name) > 255 {
		return
	}
	switch kind {
	case Host:
		n.host(name)
	case User:
		if len(name) > 1 && !people.has(strings.ToLower(name)) && !numeric(name) {
			n.put(User, name)
			n.word(name)
		}
	case Name:
		if len(name) > 2 && !ordinary(name) {
			n.put(Name, name)
			if distinct(name) || len(name) > 5 {
				n.word(name)
			}
		}
	default:
		n.put(kind, name)
	}
}

// host makes known a host by its full and its short name.
func (n *Names) host(name string) {
	name = strings.Trim(name, "[]")
	low := strings.ToLower(name)
	if numeric(name) || loopback(low) || publicHost(low) || ordinary(strings.TrimRight(low, "0123456789-")) && !strings.ContainsAny(low, "0123456789") {
		return
	}
	if addressLike(name) {
		n.put(Address, name)
		n.word(name)
		return
	}
	short, _, full := strings.Cut(low, ".")
	if full && (len(short) < 3 || numeric(short)) {
		n.put(Host, low)
		n.word(low)
		return
	}
	n.put(Host, short)
	if len(short) > 2 && !ordinary(short) {
		n.words[short] = short
	}
	if full {
		n.words[low] = short
	}
}

// put keeps a name under its kind; the first kind that it was seen as stays, but for a path, which
// is what a name is where nothing better is known.
func (n *Names) put(kind, name string) {
	low := strings.ToLower(name)
	if was, ok := n.kinds[low]; ok && was != Path {
		return
	}
	n.kinds[low] = kind
	if _, ok := n.spelling[low]; !ok {
		n.spelling[low] = name
	}
}

// word makes a name one that is looked for in running text.
func (n *Names) word(name string) {
	low := strings.ToLower(name)
	if len(low) > 2 && !ordinary(low) {
		n.words[low] = low
	}
}

// number gives all names their tokens.
func (n *Names) number() {
	if n.tokens != nil {
		return
	}
	n.tokens = map[string]string{}
	clear(n.same)
	list := slices.SortedFunc(maps.Keys(n.kinds), natural)
	for _, low := range list {
		n.tokens[low] = n.newToken(n.kinds[low])
		if n.kinds[low] == Path && distinct(n.spelling[low]) {
			n.words[low] = low
		}
	}
	for w := range n.words {
		n.longest = max(n.longest, len(w))
	}
	if len(n.secrets) > 0 {
		var pairs []string
		values := slices.SortedFunc(maps.Keys(n.secrets), func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b)) })
		for _, v := range values {
			pairs = append(pairs, v, mask)
		}
		n.hidden = strings.NewReplacer(pairs...)
	}
}

func (n *Names) newToken(kind string) string {
	n.next[kind]++
	return kind + "-" + strconv.Itoa(n.next[kind])
}

// token is what stands for a name of a kind; while learning it is the name.
func (n *Names) token(kind, name string) string {
	if ownWords.MatchString(strings.ToLower(name)) {
		return name
	}
	if n.learning {
		n.put(kind, name)
		return name
	}
	low := strings.ToLower(name)
	t, ok := n.tokens[low]
	if !ok {
		n.kinds[low], n.spelling[low] = kind, name
		t = n.newToken(kind)
		n.tokens[low] = t
	}
	n.took(low)
	return t
}

// took counts that a name was taken out.
func (n *Names) took(low string) {
	n.counts[n.kinds[low]]++
	n.used[low] = true
}

// Learn looks for names and secrets in a text. It has no effect once Text was called.
func (n *Names) Learn(text string) {
	if n.tokens != nil {
		return
	}
	n.learning = true
	n.lines(text)
	n.learning = false
}

// Text returns the text without what Names takes out. Its lines are as many as before.
func (n *Names) Text(text string) string {
	n.number()
	return n.lines(text)
}

// Counts says how often something of each kind was taken out of the texts so far.
func (n *Names) Counts() map[string]int { return maps.Clone(n.counts) }

// A Token is what stands for one name.
type Token struct {
	Token    string `json:"token"`
	Kind     string `json:"kind"`
	Original string `json:"original"`
}

// Map is every token that was put into a text with what it stands for, by kind and number. Secrets are not in it.
func (n *Names) Map() []Token {
	n.number()
	var out []Token
	for low, t := range n.tokens {
		if n.used[low] {
			out = append(out, Token{t, n.kinds[low], n.spelling[low]})
		}
	}
	slices.SortFunc(out, func(a, b Token) int {
		return cmp.Or(cmp.Compare(slices.Index(Kinds, a.Kind), slices.Index(Kinds, b.Kind)), natural(a.Token, b.Token))
	})
	return out
}

// natural compares text so that numbers in it count as numbers.
func natural(a, b string) int {
	x, y := a, b
	for x != "" && y != "" {
		i, j := digitsOf(x), digitsOf(y)
		if i > 0 && j > 0 {
			p, q := strings.TrimLeft(x[:i], "0"), strings.TrimLeft(y[:j], "0")
			if c := cmp.Or(cmp.Compare(len(p), len(q)), cmp.Compare(p, q)); c != 0 {
				return c
			}
			x, y = x[i:], y[j:]
			continue
		}
		if x[0] != y[0] {
			return cmp.Compare(x[0], y[0])
		}
		x, y = x[1:], y[1:]
	}
	return cmp.Or(cmp.Compare(len(x), len(y)), cmp.Compare(a, b))
}

func digitsOf(s string) int {
	i := 0
	for i < len(s) && s[i] >= '0' && s[i] <= '9' {
		i++
	}
	return i
}

func numeric(s string) bool { return s != "" && digitsOf(s) == len(s) }

// parts are the words that a name is made of: apart by signs, digits and changes of case.
func parts(name string) []string {
	var out []string
	begin := 0
	cut := func(i int) {
		if i > begin {
			out = append(out, strings.ToLower(name[begin:i]))
		}
		begin = i
	}
	for i := 0; i < len(name); i++ {
		c := name[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
		if !letter {
			cut(i)
			begin = i + 1
			continue
		}
		if i > begin && c >= 'A' && c <= 'Z' && name[i-1] >= 'a' && name[i-1] <= 'z' {
			cut(i)
		}
	}
	cut(len(name))
	return out
}

// ordinary reports whether a name says nothing of whose it is: all words of it are common.
func ordinary(name string) bool {
	low := strings.ToLower(name)
	if common.has(low) || libraries.has(low) {
		return true
	}
	for _, p := range parts(name) {
		if !common.has(p) && !libraries.has(p) && len(p) > 1 {
			return false
		}
	}
	return true
}

// distinct reports whether a name is no word that running text may hold as something else.
func distinct(name string) bool {
	if len(name) < 6 || ordinary(name) {
		return false
	}
	return strings.ContainsAny(name, "-_0123456789") && strings.IndexFunc(name, func(r rune) bool { return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' }) >= 0
}
