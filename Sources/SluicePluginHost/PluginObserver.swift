/// Who hears what the plugins cost and what becomes of their hosts. Called on threads of the plugin hosts and from tasks: it must not block.
package struct PluginObserver: Sendable {
    /// A hook was asked: how long it took in nanoseconds, waiting included, and whether it failed.
    package var called: @Sendable (Hook, UInt64, Bool) -> Void
    /// A plugin's host ended by itself or was ended; another takes its place.
    package var hostEnded: @Sendable (_ plugin: String) -> Void
    /// A plugin's hosts keep on ending, and its calls are refused at once; or that is over. Each plugin in turns, the end last.
    package var isOut: @Sendable (_ plugin: String, _ isOut: Bool) -> Void

    /// A plugin counted something.
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
