import SluiceCore

// The messages to the client.
//
// A large message is encoded and compressed outside of the actor, so that its sessions read their next rows meanwhile. One is under way at
// a time, and the messages behind it wait in the queue of actions.
extension RealmConnection {
    typealias Encoded = Result<[UInt8], SluiceError>
    typealias Encoding = Task<Encoded, Never>

    /// The bytes of changesets from which a message is encoded outside of the actor.
    private static let largeBytes = 256 << 10

    /// Sends a message. A large one is sent later, and `sending` is its task.
    func send(_ message: RealmServerMessage) {
        guard message.changesetBytes >= Self.largeBytes else { return send(message, Self.encode(message, services)) }
        let encoding = ahead ?? encodeLater(message)
        ahead = nil
        sending = Task {  // Unstructured because: later actions need not wait for it; `run` awaits it.
            let encoded = await encoding.value
            self.sending = nil
            if !self.machine.isClosed { self.send(message, encoded) }
        }
    }

    /// Begins to encode the message that follows a store, if it is large.
    func encodeAhead(_ message: RealmServerMessage) {
        if message.changesetBytes >= Self.largeBytes { ahead = encodeLater(message) }
    }

    private func encodeLater(_ message: RealmServerMessage) -> Encoding {
        let services = services
        return Task.detached {  // Unstructured because: the task that sends awaits it. Without one it ends by itself.
            Self.encode(message, services)
        }
    }

    private static func encode(_ message: RealmServerMessage, _ services: RealmConnectionServices) -> Encoded {
        Result { () throws(SluiceError) in try services.coding.encode(message) }
    }

    private func send(_ message: RealmServerMessage, _ encoded: Encoded) {
        switch encoded {
        case .success(let bytes):
            if case .error(let error) = message { services.observer.failed(error.code) }
            services.observer.sent(bytes: bytes.count)
            sink.send(bytes)
        case .failure(let error):
            note(defect: error)
            // Without the message the client's progress would be wrong. It connects again.
            advance(.malformed(SluiceError(.internalError, ClientError(error).message)))
        }
    }
}

extension RealmServerMessage {
    fileprivate var changesetBytes: Int {
        guard case .download(let download) = self else { return 0 }
        return download.entries.reduce(0) { $0 + $1.changeset.count }
    }
}
