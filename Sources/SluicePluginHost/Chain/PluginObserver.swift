/// Receives metrics of plugins and their hosts. Called from host threads and tasks; it must not block.
package struct PluginObserver: Sendable {
    /// Reports a call: the hook, its duration in nanoseconds including waits, and `true` if it failed.
    package var called: @Sendable (Hook, UInt64, Bool) -> Void
    /// Reports the end of a plugin's host. Another host replaces it.
    package var hostEnded: @Sendable (_ plugin: String) -> Void
    /// Reports that a plugin's circuit breaker opened or closed. The values alternate for each plugin, ending with `false`.
    package var isOut: @Sendable (_ plugin: String, _ isOut: Bool) -> Void

    /// Reports an increment of a plugin's counter.
    package var counted: @Sendable (_ plugin: String, _ name: String, _ amount: UInt64) -> Void

    package init(
        called: @escaping @Sendable (Hook, UInt64, Bool) -> Void = { _, _, _ in },
        hostEnded: @escaping @Sendable (_ plugin: String) -> Void = { _ in },
        isOut: @escaping @Sendable (_ plugin: String, _ isOut: Bool) -> Void = { _, _ in },
        counted: @escaping @Sendable (_ plugin: String, _ name: String, _ amount: UInt64) -> Void = { _, _, _ in }
    ) {
        self.called = called
        self.hostEnded = hostEnded
        self.isOut = isOut
        self.counted = counted
    }
}
