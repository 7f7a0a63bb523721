/// RealmSwift's registration for push notifications. A gateway sends none: every call throws `AppError.notCallable`.
public struct PushClient: Sendable {
    public let serviceName: String

    /// - Throws: `AppError.notCallable`, always.
    public func registerDevice(token: String, user: User) async throws { throw refusal }
    /// - Throws: `AppError.notCallable`, always.
    public func deregisterDevice(user: User) async throws { throw refusal }

    public func registerDevice(token: String, user: User, completion: @Sendable @escaping ((any Error)?) -> Void) {
        call(completion) { try await self.registerDevice(token: token, user: user) }
    }

    public func deregisterDevice(user: User, completion: @Sendable @escaping ((any Error)?) -> Void) {
        call(completion) { try await self.deregisterDevice(user: user) }
    }

    private var refusal: AppError {
        .notOffered("The push service '\(serviceName)'", "Keep the device's token in an object, and have a service of the app's own send.")
    }
}

extension App {
    /// A client for push notifications. A gateway sends none.
    public func pushClient(serviceName: String) -> PushClient { PushClient(serviceName: serviceName) }
}
