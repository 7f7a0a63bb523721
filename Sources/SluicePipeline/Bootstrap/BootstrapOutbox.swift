import SluiceCore
import SluicePorts
import Synchronization

/// The unsent frames of a bootstrap. A small bootstrap leaves together with its end, in one write.
final class BootstrapOutbox: Sendable {
    private let channel: any SessionChannel
    private let frames: any FrameMaker
    private let kept = Mutex<(frames: [Frame], bytes: Int, hasSent: Bool)>(([], 0, false))

    init(channel: any SessionChannel, frames: any FrameMaker) {
        self.channel = channel
        self.frames = frames
    }

    /// Returns `true` if `bytes` more would still wait for the end.
    func keeps(_ bytes: Int) -> Bool { kept.withLock { $0.bytes + bytes <= Limits.joinedBootstrapBytes && !$0.hasSent } }

    /// Queues a message. Flushes once more than `Limits.joinedBootstrapBytes` are queued.
    func send(_ message: [UInt8]) {
        let frame = frames.frame(message)
        let full: [Frame] = kept.withLock { kept in
            kept.frames.append(frame)
            kept.bytes += frame.byteCount
            guard kept.bytes > Limits.joinedBootstrapBytes else { return [] }
            // From here on nothing joins the end: `hasSent` keeps the outbox from waiting again.
            defer { kept = ([], 0, true) }
            return kept.frames
        }
        if !full.isEmpty { channel.send(full) }
    }

    /// Removes and returns the frames to send before the end.
    func take() -> [Frame] {
        kept.withLock { kept in
            defer { kept = ([], 0, true) }
            return kept.frames
        }
    }
}
