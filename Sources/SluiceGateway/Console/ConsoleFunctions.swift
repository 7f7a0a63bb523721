import SluiceIdentity

/// The counters of functions and of triggers, by name.
struct ConsoleFunctions: Sendable {
    private static let functions = ConsoleCounters(
        id: "functions", title: "Functions", empty: "No function was called since the gateway started.",
        caption: "Calls since the gateway started", label: "Function",
        columns: [("Calls", .functionCalls, ConsoleNumber.count(0)), ("Failed", .functionFailures, ConsoleNumber.count(0))])
    private static let triggers = ConsoleCounters(
        id: "triggers", title: "Triggers", empty: "No trigger was called since the gateway started.",
        caption: "Calls since the gateway started, and events in sluice.trigger_failure", label: "Trigger",
        columns: [
            ("Calls", .triggerCalls, ConsoleNumber.count(0)), ("Failed", .triggerFailures, ConsoleNumber.count(0)),
            ("Given up", .triggersBuried, ConsoleNumber.count(0)), ("Gaps", .triggerLosses, ConsoleNumber.count(0)),
            ("Lag", .triggerLag, ConsoleNumber.count(0)),
        ])

    let metrics: Metrics
    /// The targets of functions by their names.
    let targets: [String: String]

    init(metrics: Metrics, functions: [AppFunction]) {
        self.metrics = metrics
        targets = Dictionary(functions.map { ($0.name, Self.text($0.target)) }) { _, last in last }
    }

    var html: HTML {
        var functions = Self.functions
        functions.texts = ("Runs in", targets)
        return "\(functions.html(metrics))\(Self.triggers.html(metrics))"
    }

    /// Returns a target without the URL of a service, which may have a key.
    private static func text(_ target: FunctionTarget?) -> String {
        switch target {
        case .webhook: "a service"
        case .plugin(let target): "the plugin \(target.plugin)"
        case nil: "none"
        }
    }
}
