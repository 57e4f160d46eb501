// hyperkube is upstream Kubernetes as one multi-call program.
//
// On a node it is the kubelet or kube-proxy, for a person it is kubectl, and
// as `hyperkube control-plane CONFIG` it is a whole control plane in one
// process: the store (kine), kube-apiserver, kube-controller-manager and
// kube-scheduler, started and stopped in their order.
//
// It adds no behaviour to the upstream programs; what a Cluster is made of is
// decided by neap and arrives as flags.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	_ "distro.neap.dev/hyperkube/quiet"
	_ "k8s.io/client-go/plugin/pkg/client/auth"
	"k8s.io/component-base/cli"
	"k8s.io/component-base/logs"
	logsapi "k8s.io/component-base/logs/api/v1"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	"k8s.io/component-base/version"
	"k8s.io/kubectl/pkg/cmd"
	kubectlutil "k8s.io/kubectl/pkg/cmd/util"
	kubeproxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

const usage = "usage: hyperkube control-plane CONFIG | kubelet | kube-proxy | kubectl | version [arguments]"

func main() {
	name := filepath.Base(os.Args[0])
	if name == "hyperkube" {
		if len(os.Args) < 2 {
			fail(2, usage)
		}
		os.Args = os.Args[1:]
		name = os.Args[0]
	}
	switch name {
	case "control-plane":
		if len(os.Args) != 2 {
			fail(2, "usage: hyperkube control-plane CONFIG")
		}
		if err := runControlPlane(os.Args[1]); err != nil {
			fail(1, "control-plane: "+err.Error())
		}
	case "kubelet":
		os.Exit(cli.Run(kubelet.NewKubeletCommand(context.Background())))
	case "kube-proxy":
		os.Exit(cli.Run(kubeproxy.NewProxyCommand()))
	case "kubectl":
		runKubectl()
	case "version":
		fmt.Println(version.Get().GitVersion)
	default:
		fail(2, fmt.Sprintf("hyperkube has no program %q; %s", name, usage))
	}
}

func runKubectl() {
	// Upstream's own main does the same before it builds the command.
	_, _ = logs.GlogSetter(cmd.GetLogVerbosity(os.Args))
	command := cmd.NewDefaultKubectlCommand()
	if err := cli.RunNoErrOutput(command); err != nil {
		kubectlutil.CheckErr(err)
	}
}

func fail(code int, message string) {
	fmt.Fprintln(os.Stderr, message)
	os.Exit(code)
}

func init() {
	// Several components in one process each apply the logging configuration;
	// the same one twice is no error.
	logsapi.ReapplyHandling = logsapi.ReapplyHandlingIgnoreUnchanged
}
