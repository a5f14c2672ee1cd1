package api

import (
	"context"
	"io"
	"net/http"
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"github.com/inquest-dev/inquest/internal/catalog"
	"github.com/inquest-dev/inquest/internal/explain"
)

// entryFormats are the formats of an entry: JSON is the entry itself.
func entryFormats() []string { return append([]string{"json"}, explain.Formats()...) }

type entryFormat string

func (entryFormat) Schema(huma.Registry) *huma.Schema { return formatSchema(entryFormats()) }

type entryInput struct {
	ID     string      `path:"id" doc:"Of the entry." maxLength:"200" example:"sequence-spike"`
	Format entryFormat `query:"format"`
	Width  int         `query:"width" minimum:"40" maximum:"200" default:"100" doc:"Columns of a text."`
}

type searchInput struct {
	Q string `query:"q" required:"true" minLength:"1" maxLength:"600" doc:"An error message, or what you saw in your own words; a longer one is posted." example:"loss nan after oom"`
}

type searchTextInput struct {
	Body struct {
		_ struct{} `additionalProperties:"false"`
		Q string   `json:"q" minLength:"1" maxLength:"32768" doc:"An error message with what stands around it, or what you saw in your own words."`
	}
}

// searchBytes bounds the JSON of a text that is searched for: a character may need six bytes.
const searchBytes = 6*32768 + 1024

// A Search is what the encyclopedia has on a text.
type Search struct {
	Query   string          `json:"query"`
	Entries []explain.Match `json:"entries" nullable:"false" doc:"Best first."`
	Codes   []FoundCode     `json:"codes" nullable:"false" doc:"Rows of the tables of codes and errors that the text is about."`
}

// A FoundCode is a row of a table of codes or errors.
type FoundCode struct {
	Table string   `json:"table" doc:"xid, sxid or cuda-errors."`
	Key   string   `json:"key"`
	Title string   `json:"title"`
	Lines []string `json:"lines" nullable:"false"`
	Near  bool     `json:"near" doc:"Akin to what the row is about, not the same."`
}

func (s *server) registerKnowledge() {
	tags := []string{"knowledge"}
	registry := s.api.OpenAPI().Components.Schemas
	huma.Register(s.api, huma.Operation{
		OperationID: "listEntries", Method: http.MethodGet, Path: "/v1/entries", Tags: tags,
		Summary: "List the entries of the encyclopedia", Description: "By id.",
		Responses: responses(http.StatusOK, answers("The heads of all entries.", registry.Schema(reflect.TypeFor[[]catalog.Head](), true, ""))),
	}, func(ctx context.Context, _ *struct{}) (*answered, error) {
		return s.sendAs(ctx, http.StatusOK, "json", func(w io.Writer) error { return explain.JSON(w, s.Catalog.Entries()) }, nil)
	})
	huma.Register(s.api, huma.Operation{
		OperationID: "getEntry", Method: http.MethodGet, Path: "/v1/entries/{id}", Tags: tags,
		Summary: "An entry of the encyclopedia", Description: "What a failure means, how it is told from others, and what to do.",
		Responses: responses(http.StatusOK, in(answers("The entry.", registry.Schema(reflect.TypeFor[catalog.Entry](), true, "")), entryFormats())),
		Errors:    []int{http.StatusNotFound},
	}, s.entry)
	huma.Register(s.api, huma.Operation{
		OperationID: "search", Method: http.MethodGet, Path: "/v1/search", Tags: tags,
		Summary:   "Find entries for an error message or a description",
		Responses: responses(http.StatusOK, answers("What was found; nothing where nothing fits.", registry.Schema(reflect.TypeFor[Search](), true, ""))),
		Errors:    []int{http.StatusUnprocessableEntity},
	}, func(ctx context.Context, in *searchInput) (*answered, error) { return s.search(ctx, in.Q) })
	huma.Register(s.api, huma.Operation{
		OperationID: "searchText", Method: http.MethodPost, Path: "/v1/search", Tags: tags,
		Summary: "Find entries for a long error message", Description: "It changes nothing.",
		MaxBodyBytes: searchBytes, BodyReadTimeout: s.Idle,
		Responses: responses(http.StatusOK, answers("What was found; nothing where nothing fits.", registry.Schema(reflect.TypeFor[Search](), true, ""))),
		Errors:    []int{http.StatusBadRequest, http.StatusRequestTimeout, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType},
	}, func(ctx context.Context, in *searchTextInput) (*answered, error) { return s.search(ctx, in.Body.Q) })
}

func (s *server) entry(ctx context.Context, in *entryInput) (*answered, error) {
	e, err := s.Catalog.Entry(in.ID)
	if err != nil || e == nil {
		detail := "there is no entry " + quoted(in.ID)
		if near := explain.Meant(s.Catalog, in.ID); near != "" {
			detail += "; did you mean " + near + "?"
		} else {
			detail += "; GET /v1/search?q= finds entries"
		}
		return nil, huma.Error404NotFound(detail)
	}
	f := asked(ctx, string(in.Format), entryFormats())
	return s.sendAs(ctx, http.StatusOK, f, func(w io.Writer) error {
		if f == "json" {
			return explain.JSON(w, e)
		}
		_, err := io.WriteString(w, explain.Render(e, f, in.Width))
		return err
	}, nil)
}

func (s *server) search(ctx context.Context, q string) (*answered, error) {
	x, err := s.index()
	if err != nil {
		return nil, problem(err)
	}
	found := Search{Query: q, Entries: append([]explain.Match{}, x.Find(q)...), Codes: []FoundCode{}}
	for _, r := range explain.Rows(s.Catalog, q) {
		found.Codes = append(found.Codes, FoundCode{Table: r.Table, Key: r.Key, Title: r.Title, Lines: append([]string{}, r.Lines...), Near: r.Near})
	}
	return s.sendJSON(ctx, http.StatusOK, found, nil)
}
