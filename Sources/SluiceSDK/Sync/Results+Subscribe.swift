public import Foundation
import SluiceCore
import SluiceReplica

/// When `Results.subscribe` waits for the server.
public enum WaitForSyncMode: UInt, Sendable {
    /// When the subscription is new, or its query is.
    case onCreation = 0
    /// Every time; it needs a connection every time.
    case always = 1
    case never = 2
}

extension Results where Element: Object {
    /// Subscribes to the query, so that the server sends its objects.
    /// - Parameters:
    ///   - name: of the subscription; one with the same name gets this query instead of its own.
    ///   - timeout: seconds to wait at most; nil: as long as it takes. The subscription stays when it is over.
    /// - Returns: these results.
    /// - Throws: `Realm.Error.subscriptionFailed` when the server refuses the query; `ETIMEDOUT`.
    @discardableResult
    public func subscribe(
        name: String? = nil, waitForSync: WaitForSyncMode = .onCreation, timeout: TimeInterval? = nil,
        _isolation: isolated (any Actor)? = #isolation
    ) async throws -> Results<Element> {
        let set = Realm(core: storage.core).subscriptions
        let text = subscriptionText
        let existing = set.storage.committed.subscriptions.first { $0.type == Element.className() && $0.query == text && $0.name == name }
        if waitForSync != .always, existing != nil { return self }
        let version = try set.commit { storage.subscription = set.storage.put(name: name, type: Element.className(), text: text) }
        if waitForSync == .never { return self }
        try await Results.wait(storage.core.file, version, seconds: timeout)
        storage.core.refresh()
        return self
    }

    /// Removes the subscription that `subscribe` made, or else the unnamed one with this query. Its objects leave the device
    /// when the server has answered, unless another subscription covers them.
    public func unsubscribe() {
        let set = Realm(core: storage.core).subscriptions
        let text = subscriptionText
        let found = set.storage.committed.subscriptions.first {
            storage.subscription == nil ? $0.type == Element.className() && $0.query == text : $0.id == storage.subscription
        }
        guard let found, storage.subscription != nil || found.name == nil else { return }
        set.update { set.storage.writable.removeAll { $0.id == found.id } }
    }

    /// The query with the file's names, which are the server's.
    private var subscriptionText: String {
        guard case .table = storage.origin, storage.rest.isEmpty else {
            throwRealmException(
                "Only results of a class can be subscribed to, without block predicates and diacritic insensitive comparisons.")
        }
        return storage.query.text
    }

    private static func wait(_ file: OpenFile, _ version: UInt64, seconds: TimeInterval?) async throws {
        guard let seconds else { return try await file.waitForSubscriptionSet(version) }
        try await withThrowingTaskGroup(of: Bool.self) { group in
            group.addTask {
                try await file.waitForSubscriptionSet(version)
                return true
            }
            group.addTask {
                try await _Concurrency.Task.sleep(for: .seconds(seconds))
                return false
            }
            defer { group.cancelAll() }
            if try await group.next() == false {
                throw NSError(
                    domain: NSPOSIXErrorDomain, code: Int(ETIMEDOUT),
                    userInfo: [NSLocalizedDescriptionKey: String(format: "Waiting for update timed out after %.1f seconds.", seconds)])
            }
        }
    }
}
