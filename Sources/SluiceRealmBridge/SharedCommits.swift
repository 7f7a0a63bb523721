import SluiceCore
import SluiceRealm
import Synchronization

/// The last messages with commits, decoded. Sessions with equal views receive one message, which is decoded once for all of them.
///
/// Views of all connections use it, each on the executor of its own.
final class SharedCommits: Sendable {
    /// The messages that are kept. One step of the log has a message for each group of equal views.
    private static let most = 8
    /// The bytes of the largest message that is kept.
    private static let mostBytes = 64 << 10

    private struct Known {
        let bytes: [UInt8]
        let schema: BridgeSchema
        let message: BridgeMessage
    }

    private struct State {
        /// A ring: the next message replaces the one at `next`.
        var known: [Known] = []
        var next = 0
    }

    private let state = Mutex(State())

    /// Decodes a message of a session.
    /// - Throws: The errors of `BridgeMessage.decode`.
    func decode(_ bytes: [UInt8], _ schema: BridgeSchema) throws(SluiceError) -> BridgeMessage {
        if let message = state.withLock({ $0.known.first { $0.schema === schema && $0.bytes.isSame(as: bytes) }?.message }) {
            return message
        }
        let message = try BridgeMessage.decode(bytes, schema.codec)
        if case .commits = message, bytes.count <= Self.mostBytes {
            let known = Known(bytes: bytes, schema: schema, message: message)
            state.withLock { state in
                if state.known.count < Self.most { state.known.append(known) } else { state.known[state.next] = known }
                state.next = (state.next + 1) % Self.most
            }
        }
        return message
    }
}

extension [UInt8] {
    /// `true` if two arrays share their memory. Both are alive, so the address tells.
    fileprivate func isSame(as other: [UInt8]) -> Bool {
        count == other.count
            && withUnsafeBufferPointer { mine in other.withUnsafeBufferPointer { theirs in mine.baseAddress == theirs.baseAddress } }
    }
}

/// The content of the entry for a commit, if it is the same for each file that holds the objects. The first file encodes it.
final class SharedEntry: Sendable {
    /// The bytes of an entry, and its operations for the check of the client's objects.
    struct Content: Sendable {
        var changeset: [UInt8]
        var operations: [OutgoingOperation]
        var isEmpty: Bool
        /// The names of the properties that each change gives, by the index of the change.
        var names: [Set<String>?]
    }

    private enum State {
        case unknown
        /// Files differ: a value is a container, which the entry of each file prepares by itself.
        case differs
        case known(Content)
    }

    private let state = Mutex(State.unknown)

    /// Returns the content; nil if files differ. Two files may encode it at a time, to the same bytes.
    func content(_ encode: () throws(SluiceError) -> Content?) throws(SluiceError) -> Content? {
        switch state.withLock({ $0 }) {
        case .known(let content): return content
        case .differs: return nil
        case .unknown: break
        }
        let content = try encode()
        state.withLock { $0 = content.map { .known($0) } ?? .differs }
        return content
    }
}
