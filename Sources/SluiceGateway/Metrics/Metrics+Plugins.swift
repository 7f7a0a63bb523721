import SluicePluginHost
import SluiceTracing
import Tracing

extension Metrics {
    /// Returns an observer that records the calls and host restarts of plugins.
    /// - Parameter tracer: Receives a span for each call. The call is part of the task that made it.
    func pluginObserver(tracer: SpanTracer?) -> PluginObserver {
        let hooks = Dictionary(
            uniqueKeysWithValues: Hook.allCases.map { hook in
                let name = hook.name
                return (
                    hook,
                    (number(.pluginCalls, label: name), number(.pluginFailures, label: name), histogram(.pluginSeconds, label: name))
                )
            })
        let restarts = number(.pluginRestarts)
        return PluginObserver(
            called: { hook, nanoseconds, isFailure in
                guard let (calls, failures, seconds) = hooks[hook] else { return }
                calls.add()
                if isFailure { failures.add() }
                seconds.observe(nanoseconds: nanoseconds)
                tracer?.record(
                    "sluice.plugin", ofKind: .client, nanoseconds: nanoseconds, isError: isFailure,
                    attributes: ["sluice.hook": SpanAttribute.string(hook.name)])
            },
            hostEnded: { _ in restarts.add() },
            // Added, not set: two generations of rules may each have the plugin.
            isOut: { plugin, isOut in self.number(.pluginOut, label: plugin).add(isOut ? 1 : -1) },
            counted: { plugin, name, amount in self.number(.pluginCounts, label: "\(plugin).\(name)").add(Double(amount)) })
    }

    /// - Parameter missing: The number of plugins that lack a part of the sandbox, by part.
    func show(_ missing: [String: Int]) {
        for part in ["landlock", "privileges", "process", "seccomp", "threads"] {
            number(.pluginSandbox, label: part).set(Double(missing[part] ?? 0))
        }
    }
}
