import SluiceCore
import Synchronization

/// What a bootstrap has to say and has not said yet: a small one goes out with its end, in one write.
final class BootstrapOutbox: Sendable {
    private let channel: any SessionChannel
    private let frames: any FrameMaker
    private let kept = Mutex<(frames: [Frame], bytes: Int, hasSent: Bool)>(([], 0, false))

    init(channel: any SessionChannel, frames: any FrameMaker) {
        self.channel = channel
        self.frames = frames
    }

    /// Whether so many bytes more would still wait for the end.
    func keeps(_ bytes: Int) -> Bool { kept.withLock { $0.bytes + bytes <= Limits.joinedBootstrapBytes && !$0.hasSent } }

    func send(_ message: [UInt8]) {
        let frame = frames.frame(message)
        let full: [Frame] = kept.withLock { kept in
            kept.frames.append(frame)
            kept.bytes += frame.byteCount
            guard kept.bytes > Limits.joinedBootstrapBytes else { return [] }
            defer { kept = ([], 0, true) }
            return kept.frames
        }
        if !full.isEmpty { channel.send(full) }
    }

    /// What is to be sent before the end, by whoever sends that.
    func take() -> [Frame] {
        kept.withLock { kept in
            defer { kept = ([], 0, true) }
            return kept.frames
        }
    }
}
