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

    var html: HTML { "\(Self.functions.html(metrics))\(Self.triggers.html(metrics))" }
}
