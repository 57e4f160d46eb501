package main

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/emicklei/go-restful/v3"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/mux"
	"k8s.io/apiserver/pkg/server/routes"
	"k8s.io/kube-openapi/pkg/handler3"
)

// How long the OpenAPI documents are kept after somebody last read them.
const documentsKept = 5 * time.Minute

// installOpenAPI serves the documents of the built-in APIs at their usual
// paths, as upstream builds them, but builds them when somebody reads one and
// forgets them a while after. Upstream builds all of them at the start and
// keeps them, which is nearly half of an idle API server's memory.
//
// config is the one that server was made from, with SkipOpenAPIInstallation.
func installOpenAPI(server *genericapiserver.GenericAPIServer, config *genericapiserver.Config, args []string) error {
	container, paths := server.Handler.GoRestfulContainer, server.Handler.NonGoRestfulMux
	documents := &onDemand{build: func() http.Handler {
		served := mux.NewPathRecorderMux("openapi")
		routes.OpenAPI{Config: config.OpenAPIConfig}.InstallV2(container, served)
		routes.OpenAPI{V3Config: config.OpenAPIV3Config}.InstallV3(container, served)
		return served
	}}
	v3, err := newDocumentsV3(container.RegisteredWebServices(), strings.Join(args, "\n"), documents)
	if err != nil {
		return err
	}
	paths.Handle("/openapi/v2", documents)
	paths.Handle("/openapi/v3", http.HandlerFunc(v3.root))
	paths.HandlePrefix("/openapi/v3/", http.HandlerFunc(v3.group))
	return nil
}

// onDemand builds a handler at a request and forgets it when none came for a
// while.
type onDemand struct {
	build func() http.Handler

	lock   sync.Mutex
	built  http.Handler
	forget *time.Timer
}

func (o *onDemand) handler() http.Handler {
	o.lock.Lock()
	defer o.lock.Unlock()
	if o.built == nil {
		o.built = o.build()
	}
	if o.forget != nil {
		o.forget.Stop()
	}
	o.forget = time.AfterFunc(documentsKept, func() {
		o.lock.Lock()
		defer o.lock.Unlock()
		o.built = nil
	})
	return o.built
}

func (o *onDemand) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	o.handler().ServeHTTP(w, r)
}

// documentsV3 answers what the aggregator asks once a second, the list of
// documents, without building them: a document's hash is taken of what it is
// made from, the program and its flags.
type documentsV3 struct {
	urls      map[string]string
	list      []byte
	documents http.Handler
}

func newDocumentsV3(services []*restful.WebService, flags string, documents http.Handler) (*documentsV3, error) {
	program, _ := debug.ReadBuildInfo()
	urls := map[string]string{}
	list := handler3.OpenAPIV3Discovery{Paths: map[string]handler3.OpenAPIV3DiscoveryGroupVersion{}}
	for _, service := range services {
		group := strings.TrimPrefix(service.RootPath(), "/")
		hash := sha256.Sum256(fmt.Appendf(nil, "%s\n%s\n%s", program, flags, group))
		urls[group] = fmt.Sprintf("%s?hash=%X", (&url.URL{Path: "/openapi/v3/" + group}).String(), hash[:16])
		list.Paths[group] = handler3.OpenAPIV3DiscoveryGroupVersion{ServerRelativeURL: urls[group]}
	}
	encoded, err := json.Marshal(list)
	return &documentsV3{urls: urls, list: encoded, documents: documents}, err
}

func (d *documentsV3) root(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(d.list)
}

// group serves one document. With a hash the answer may be kept for ever, and
// a hash of another program's document leads to ours, both as upstream has it.
func (d *documentsV3) group(w http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Get("hash") != "" {
		current := d.urls[strings.TrimPrefix(r.URL.Path, "/openapi/v3/")]
		if current != "" && !strings.HasSuffix(current, "?hash="+r.URL.Query().Get("hash")) {
			http.Redirect(w, r, current, http.StatusMovedPermanently)
			return
		}
		w.Header().Set("Cache-Control", "public, immutable")
		w.Header().Set("Expires", time.Now().AddDate(1, 0, 0).Format(time.RFC1123))
		r = r.Clone(r.Context())
		r.URL.RawQuery = ""
	}
	d.documents.ServeHTTP(w, r)
}
