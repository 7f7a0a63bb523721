import SluiceCore
package import SluicePipeline
package import SluicePorts
package import SluiceRealm
import Synchronization

/// Serves client files of Realm's protocol through sessions of the pipeline.
///
/// Each open file has a session in this process, as a client of the SDK has one over a socket. So rules, views, conflicts, compensating
/// writes and bounds are the same for both.
package final class RealmBridge: RealmViews, RealmWrites {
    private let shared: BridgeShared
    /// The open views by file.
    private let views = Mutex<[UInt64: BridgeView]>([:])

    package init(services: SessionServices, bounds: BridgeBounds = BridgeBounds()) {
        shared = BridgeShared(services: services, bounds: bounds)
    }

    /// The number of files that are open.
    package var count: Int { views.withLock(\.count) }

    /// The views of the files that are open, in no order.
    var open: [BridgeView] { views.withLock { Array($0.values) } }

    func view(of file: UInt64) -> BridgeView? { views.withLock { $0[file] } }

    package func open(
        _ client: RealmViewClient, for connection: any Actor, wake: @escaping @Sendable () -> Void,
        keep: @escaping @Sendable ([UInt8], UInt64) async throws -> Void
    ) async throws -> any RealmClientView {
        let file = client.stored.record.file.ident
        let newest = try await shared.services.snapshots.currentLSN()
        let view = try BridgeView(client, for: connection, shared, newest: newest.rawValue, wake: wake, keep: keep) { [weak self] view in
            self?.views.withLock { if $0[file] === view { $0[file] = nil } }
        }
        do {
            try await view.start()
            try Task.checkCancellation()
        } catch {
            view.close()
            throw error
        }
        let older = views.withLock { $0.updateValue(view, forKey: file) }
        // Its connection is superseded, and finds that out by itself once it stores something.
        older?.close()
        return view
    }

    package func integrate(_ upload: RealmUploadMessage, of session: RealmFileSession, user: String) async throws -> RealmWriteResult {
        guard let view = views.withLock({ $0[session.file] }), view.client.stored.session == session else {
            throw SluiceError(.resync, "Client file \(session.file) has been opened by another session.")
        }
        return try await view.integrate(upload)
    }

    /// Re-evaluates the rules for all files, and returns at once. If the permissions of one changed, its client receives the difference.
    /// - Parameter user: The user with new data; nil if the rules changed.
    package func reconsider(user: String?) {
        for view in open where user == nil || view.client.user == user {
            view.orders.put(.reconsider(user: user))
        }
    }
}
