package import SluiceCore

/// What the gateway answers plugins that ask within a call.
package struct HostServices: Sendable {
    /// A user's custom data; nil when there is no such user.
    package var customData: @Sendable (_ user: String) async throws(SluiceError) -> JSON?
    /// The canonical text of a predicate on a type; the error says what is wrong with it.
    package var parse: @Sendable (_ type: String, _ predicate: String) async throws(SluiceError) -> String

    /// Whether a text is a query by itself, whatever it is about.
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

    /// Without a gateway, as when a plugin is checked: there are no users, and every predicate is taken as it is.
    package static let none = HostServices(
        customData: { (_) throws(SluiceError) in nil }, parse: { (_, predicate) throws(SluiceError) in predicate })

    func answer(_ question: HostQuestion) async -> HookAnswer {
        switch question {
        case .customData(let user):
            do throws(SluiceError) {
                guard let data = try await customData(user) else { return HookAnswer(status: .denied, bytes: []) }
                return HookAnswer(status: .ok, bytes: data.utf8)
            } catch { return HookAnswer(status: .failed, bytes: Array(error.message.utf8)) }
        case .parse(let type, let predicate):
            do throws(SluiceError) { return HookAnswer(status: .ok, bytes: Array(try await parse(type, predicate).utf8)) } catch {
                return HookAnswer(status: .denied, bytes: Array(error.message.utf8))
            }
        }
    }
}
