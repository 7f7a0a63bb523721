package import SluiceCore
package import SluiceValues

/// The gateway's answers to plugins that ask within a call.
package struct HostServices: Sendable {
    /// Returns a user's custom data; nil for an unknown user.
    package var customData: @Sendable (_ user: String) async throws(SluiceError) -> JSON?
    /// Returns the canonical text of a predicate on a class. The error describes its fault.
    package var parse: @Sendable (_ type: String, _ predicate: String) async throws(SluiceError) -> String

    /// Returns `true` if a text is a query by itself, for any class.
    package var isQuery: @Sendable (_ text: String) -> Bool

    package init(
        customData: @escaping @Sendable (_ user: String) async throws(SluiceError) -> JSON?,
        parse: @escaping @Sendable (_ type: String, _ predicate: String) async throws(SluiceError) -> String,
        isQuery: @escaping @Sendable (_ text: String) -> Bool = { _ in true }
    ) {
        self.customData = customData
        self.parse = parse
        self.isQuery = isQuery
    }

    /// Services without a gateway, for checks of plugins: no users exist, and every predicate is returned unchanged.
    package static let none = HostServices(
        customData: { (_) throws(SluiceError) in nil }, parse: { (_, predicate) throws(SluiceError) in predicate })

    /// Answers one question. An unknown user and an invalid predicate are denials.
    func answer(_ question: HostQuestion) async -> HookAnswer {
        switch question {
        case .customData(let user):
            do throws(SluiceError) {
                guard let data = try await customData(user) else { return HookAnswer(status: .denied, bytes: []) }
                return HookAnswer(status: .ok, bytes: data.utf8)
            } catch { return HookAnswer(status: .failed, bytes: Array(error.operatorText.utf8)) }
        case .parse(let type, let predicate):
            do throws(SluiceError) { return HookAnswer(status: .ok, bytes: Array(try await parse(type, predicate).utf8)) } catch {
                return HookAnswer(status: .denied, bytes: Array(error.message.utf8))
            }
        }
    }
}

/// A record that a plugin stores in a stream outside of the database.
package struct PluginRecord: Hashable, Sendable {
    package var plugin: String
    package var stream: String
    /// The ordering key; records with equal keys keep their order.
    package var key: String?
    package var record: JSON

    /// A destination that rejects all records, for gateways without one.
    /// - Throws: `configMissing`.
    package static func nowhere(_ records: [PluginRecord]) async throws(SluiceError) {
        throw SluiceError(.configMissing, "\(records[0].plugin) writes records, but no store for them is configured.")
    }
}

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
