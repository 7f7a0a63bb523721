package import SluicePorts
import Synchronization

/// The models of client files between their sessions, so that a client that returns soon needs no search for its objects.
///
/// Beyond a bound, the models that were kept first are dropped.
package final class RealmKeptModels: Sendable {
    private struct Kept {
        var model: ClientModel
        /// The session that returned the model.
        var number: UInt64
        /// The last version of the stream that the model describes.
        var version: UInt64
        /// The version of the client up to which the model has its changesets.
        var client: UInt64
        var order: UInt64
    }

    private struct State {
        var models: [UInt64: Kept] = [:]
        var objects = 0
        var order: UInt64 = 0

        mutating func remove(_ file: UInt64) -> Kept? {
            guard let kept = models.removeValue(forKey: file) else { return nil }
            objects -= kept.model.count
            return kept
        }
    }

    private let state = Mutex(State())
    private let maximumFiles: Int
    private let maximumObjects: Int

    /// - Parameter objects: The bound of the objects of all models, of about 50 bytes each.
    package init(files: Int = 1_024, objects: Int = 1_000_000) { (maximumFiles, maximumObjects) = (files, objects) }

    package var count: Int { state.withLock { $0.models.count } }

    /// Keeps the model of a session that is over.
    package func keep(_ client: RealmClientState, of session: RealmFileSession) {
        guard client.model.count <= maximumObjects, !client.model.isSaturated, !client.stream.record.isLost else { return }
        state.withLock { state in
            // A newer session has opened the file meanwhile.
            if let known = state.models[session.file], known.number > session.number { return }
            _ = state.remove(session.file)
            state.order += 1
            state.objects += client.model.count
            state.models[session.file] = Kept(
                model: client.model, number: session.number, version: client.stream.lastVersion,
                client: client.stream.record.upload.clientVersion, order: state.order)
            while state.models.count > maximumFiles || state.objects > maximumObjects {
                guard let oldest = state.models.min(by: { $0.value.order < $1.value.order }) else { return }
                _ = state.remove(oldest.key)
            }
        }
    }

    /// Removes and returns the model of a file.
    ///
    /// A changeset may take effect while its session ends. The views then know what it made, and the model does not.
    /// - Parameter stored: The stored state, with the version of the client up to which its changesets took effect.
    /// - Returns: nil if none is kept, another session opened the file in between, the store has another stream, or other changesets took
    ///   effect.
    package func take(_ stored: StoredRealmClient) -> ClientModel? {
        guard let kept = state.withLock({ $0.remove(stored.record.file.ident) }), kept.number < .max else { return nil }
        let isNext = kept.number + 1 == stored.sessionNumber
        let isSame = kept.version == ClientStream(stored).lastVersion && kept.client == stored.record.upload.clientVersion
        return isNext && isSame ? kept.model : nil
    }
}
