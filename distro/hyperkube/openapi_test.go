package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/emicklei/go-restful/v3"
)

func answer(handler http.Handler, path string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	return w
}

func TestDocumentsAreBuiltOnceAndWhenAskedFor(t *testing.T) {
	built := 0
	documents := &onDemand{build: func() http.Handler {
		built++
		return http.NotFoundHandler()
	}}
	if built != 0 {
		t.Fatal("built before anybody asked")
	}
	answer(documents, "/openapi/v2")
	answer(documents, "/openapi/v2")
	if built != 1 {
		t.Fatalf("built %d times", built)
	}
}

func TestHashOfADocument(t *testing.T) {
	service := new(restful.WebService).Path("/apis/apps/v1")
	documents := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.URL.String())
	})
	v3, err := newDocumentsV3([]*restful.WebService{service}, "--flag", documents)
	if err != nil {
		t.Fatal(err)
	}
	other, err := newDocumentsV3([]*restful.WebService{service}, "--other", documents)
	if err != nil {
		t.Fatal(err)
	}
	current := v3.urls["apis/apps/v1"]
	if current == other.urls["apis/apps/v1"] {
		t.Error("other flags make the same hash")
	}
	if list := answer(http.HandlerFunc(v3.root), "/openapi/v3").Body.String(); !strings.Contains(list, current) {
		t.Errorf("%s does not list %s", list, current)
	}
	group := http.HandlerFunc(v3.group)
	// The right hash: upstream's handler does not see it, and the answer lasts.
	if w := answer(group, current); w.Body.String() != "/openapi/v3/apis/apps/v1" || w.Header().Get("Cache-Control") != "public, immutable" {
		t.Errorf("%s: %s %v", current, w.Body, w.Header())
	}
	if w := answer(group, other.urls["apis/apps/v1"]); w.Code != http.StatusMovedPermanently || w.Header().Get("Location") != current {
		t.Errorf("a wrong hash: %d %v", w.Code, w.Header())
	}
	if w := answer(group, "/openapi/v3/apis/apps/v1"); w.Code != http.StatusOK || w.Header().Get("Cache-Control") != "" {
		t.Errorf("no hash: %d %v", w.Code, w.Header())
	}
}
