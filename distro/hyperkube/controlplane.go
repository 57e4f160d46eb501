package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"sync"
	"syscall"
	"time"

	kine "github.com/k3s-io/kine/pkg/app"
	"github.com/k3s-io/kine/pkg/endpoint"
	"github.com/spf13/pflag"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	cliflag "k8s.io/component-base/cli/flag"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	apiserveroptions "k8s.io/kubernetes/cmd/kube-apiserver/app/options"
	kcm "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	kcmoptions "k8s.io/kubernetes/cmd/kube-controller-manager/app/options"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	scheduleroptions "k8s.io/kubernetes/cmd/kube-scheduler/app/options"
	controlplaneapiserver "k8s.io/kubernetes/pkg/controlplane/apiserver"
)

// controlPlane is the configuration file: the flags of each part, as upstream
// names them. A part without flags is left out.
type controlPlane struct {
	// Kubeconfig with which this process asks for /readyz.
	ProbeKubeconfig   string   `json:"probeKubeconfig"`
	Kine              []string `json:"kine"`
	APIServer         []string `json:"apiServer"`
	ControllerManager []string `json:"controllerManager"`
	Scheduler         []string `json:"scheduler,omitempty"`
}

const (
	// How long each part may take to start or to stop before the whole
	// process ends with an error.
	startDeadline = 60 * time.Second
	stopDeadline  = 10 * time.Second
	// When a start is over: from then on memory counts for more than CPU.
	settled = 20 * time.Second
	// Per cent of growth between two collections from then on.
	settledGC = 30
	// The API server's own lease is for those who clean up after one of several
	// that died; it runs out after an hour. Upstream writes it every ten
	// seconds, which an idle control plane alone hears of.
	identityRenewal = 10 * time.Minute
)

// part is one running component; done yields its end.
type part struct {
	name   string
	cancel context.CancelFunc
	done   chan error
}

func start(name string, run func(context.Context) error) *part {
	ctx, cancel := context.WithCancel(context.Background())
	p := &part{name: name, cancel: cancel, done: make(chan error, 1)}
	go func() { p.done <- run(ctx) }()
	return p
}

// stop ends the part and waits for it.
func (p *part) stop() error {
	p.cancel()
	select {
	case <-p.done:
		return nil
	case <-time.After(stopDeadline):
		return fmt.Errorf("%s did not stop within %s", p.name, stopDeadline)
	}
}

// runControlPlane starts store, API server, controllers in this order and
// returns after a signal or after the end of any part, all others stopped in
// the reverse order.
func runControlPlane(path string) error {
	config, err := readConfig(path)
	if err != nil {
		return err
	}
	stop := make(chan os.Signal, 2)
	signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT)

	var running []*part
	ended := make(chan error, 4)
	launch := func(name string, run func(context.Context) error) {
		p := start(name, func(ctx context.Context) error {
			err := run(ctx)
			if ctx.Err() == nil {
				ended <- fmt.Errorf("%s ended: %w", name, orUnexpected(err))
			}
			return err
		})
		running = append(running, p)
	}
	stopAll := func() error {
		var errs []error
		// Controllers and scheduler come down together, then what they need.
		for i := len(running) - 1; i >= 0; i-- {
			if i >= 2 {
				running[i].cancel()
			}
		}
		for i := len(running) - 1; i >= 0; i-- {
			if err := running[i].stop(); err != nil {
				errs = append(errs, err)
			}
		}
		return errors.Join(errs...)
	}
	// wait returns what ended the process early, or nil once ready.
	wait := func(ready func(context.Context) error) (bool, error) {
		ctx, cancel := context.WithTimeout(context.Background(), startDeadline)
		defer cancel()
		answer := make(chan error, 1)
		go func() { answer <- ready(ctx) }()
		select {
		case err := <-answer:
			return false, err
		case err := <-ended:
			return false, err
		case <-stop:
			return true, nil
		}
	}

	launch("kine", func(ctx context.Context) error { return runKine(ctx, config.Kine) })
	socket := kineSocket(config.Kine)
	if stopped, err := wait(func(ctx context.Context) error { return socketReady(ctx, socket) }); stopped || err != nil {
		return errors.Join(err, stopAll())
	}
	launch("kube-apiserver", func(ctx context.Context) error { return runAPIServer(ctx, config.APIServer) })
	if stopped, err := wait(func(ctx context.Context) error { return apiReady(ctx, config.ProbeKubeconfig) }); stopped || err != nil {
		return errors.Join(err, stopAll())
	}
	launch("kube-controller-manager", func(ctx context.Context) error { return runControllerManager(ctx, config.ControllerManager) })
	if len(config.Scheduler) > 0 {
		launch("kube-scheduler", func(ctx context.Context) error { return runScheduler(ctx, config.Scheduler) })
	}
	trim := time.AfterFunc(settled, func() {
		debug.SetGCPercent(settledGC)
		debug.FreeOSMemory()
	})
	defer trim.Stop()

	select {
	case err = <-ended:
	case <-stop:
		err = nil
	}
	return errors.Join(err, stopAll())
}

func orUnexpected(err error) error {
	if err == nil {
		return errors.New("unasked")
	}
	return err
}

func readConfig(path string) (controlPlane, error) {
	var config controlPlane
	data, err := os.ReadFile(path)
	if err != nil {
		return config, err
	}
	decoder := json.NewDecoder(strings.NewReader(string(data)))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&config); err != nil {
		return config, fmt.Errorf("reading %s: %w", path, err)
	}
	if len(config.Kine) == 0 || len(config.APIServer) == 0 || len(config.ControllerManager) == 0 || config.ProbeKubeconfig == "" {
		return config, fmt.Errorf("%s: kine, apiServer, controllerManager and probeKubeconfig are needed", path)
	}
	return config, nil
}

func kineSocket(args []string) string {
	for _, arg := range args {
		if path, ok := strings.CutPrefix(arg, "--listen-address=unix://"); ok {
			return path
		}
	}
	return ""
}

func socketReady(ctx context.Context, path string) error {
	if path == "" {
		return errors.New("kine needs --listen-address=unix://PATH")
	}
	return poll(ctx, func() error {
		conn, err := net.Dial("unix", path)
		if err != nil {
			return err
		}
		return conn.Close()
	})
}

func apiReady(ctx context.Context, kubeconfig string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(rest.AddUserAgent(config, "readiness"))
	if err != nil {
		return err
	}
	return poll(ctx, func() error {
		return client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
	})
}

// poll repeats the look until it succeeds or the context ends; the last
// failure is part of the error.
func poll(ctx context.Context, look func() error) error {
	for {
		err := look()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not ready within %s: %w", startDeadline, err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func runKine(ctx context.Context, args []string) error {
	config := kine.Config(args)
	config.WaitGroup = &sync.WaitGroup{}
	if _, err := endpoint.Listen(ctx, config); err != nil {
		return err
	}
	<-ctx.Done()
	config.WaitGroup.Wait()
	return nil
}

func parse(name string, sets cliflag.NamedFlagSets, args []string) error {
	flags := pflag.NewFlagSet(name, pflag.ContinueOnError)
	for _, set := range sets.FlagSets {
		flags.AddFlagSet(set)
	}
	return flags.Parse(args)
}

func runAPIServer(ctx context.Context, args []string) error {
	options := apiserveroptions.NewServerRunOptions()
	if err := parse("kube-apiserver", options.Flags(), args); err != nil {
		return err
	}
	if err := options.GenericServerRunOptions.ComponentGlobalsRegistry.Set(); err != nil {
		return err
	}
	rest.SetDefaultWarningHandler(rest.NoWarnings{})
	completed, err := options.Complete(ctx)
	if err != nil {
		return err
	}
	if errs := completed.Validate(); len(errs) != 0 {
		return utilerrors.NewAggregate(errs)
	}
	return serveAPI(ctx, completed, args)
}

// serveAPI is upstream's apiserver.Run but for the OpenAPI documents.
func serveAPI(ctx context.Context, options apiserveroptions.CompletedOptions, args []string) error {
	name, err := cache.NewInformerName("kube-apiserver")
	if err != nil {
		return err
	}
	options.InformerName = name
	config, err := apiserver.NewConfig(options)
	if err != nil {
		return err
	}
	controlplaneapiserver.IdentityLeaseRenewIntervalPeriod = identityRenewal
	generic := config.KubeAPIs.ControlPlane.Generic
	generic.SkipOpenAPIInstallation = true
	completed, err := config.Complete()
	if err != nil {
		return err
	}
	chain, err := apiserver.CreateServerChain(completed)
	if err != nil {
		return err
	}
	server, ok := chain.GenericAPIServer.NextDelegate().(*genericapiserver.GenericAPIServer)
	if !ok {
		return fmt.Errorf("the aggregator stands before a %T", chain.GenericAPIServer.NextDelegate())
	}
	if err := installOpenAPI(server, generic, args); err != nil {
		return err
	}
	prepared, err := chain.PrepareRun()
	if err != nil {
		return err
	}
	// Whoever needs the definitions from now on builds them anew.
	generic.OpenAPIV3Config.Definitions = nil
	return prepared.Run(ctx)
}

func runControllerManager(ctx context.Context, args []string) error {
	options, err := kcmoptions.NewKubeControllerManagerOptions()
	if err != nil {
		return err
	}
	all, disabled, aliases := kcm.KnownControllers(), kcm.ControllersDisabledByDefault(), kcm.ControllerAliases()
	if err := parse("kube-controller-manager", options.Flags(all, disabled, aliases), args); err != nil {
		return err
	}
	if err := options.ComponentGlobalsRegistry.Set(); err != nil {
		return err
	}
	config, err := options.Config(ctx, all, disabled, aliases)
	if err != nil {
		return err
	}
	return kcm.Run(ctx, config.Complete())
}

func runScheduler(ctx context.Context, args []string) error {
	options := scheduleroptions.NewOptions()
	if err := parse("kube-scheduler", *options.Flags, args); err != nil {
		return err
	}
	if err := options.ComponentGlobalsRegistry.Set(); err != nil {
		return err
	}
	name, err := cache.NewInformerName("kube-scheduler")
	if err != nil {
		return err
	}
	options.InformerName = name
	completed, sched, err := scheduler.Setup(ctx, options)
	if err != nil {
		return err
	}
	return scheduler.Run(ctx, completed, sched)
}

func init() {
	// A component that panics ends the whole process: all parts or none.
	utilruntime.ReallyCrash = true
}
