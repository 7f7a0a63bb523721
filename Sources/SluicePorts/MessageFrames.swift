/// Frames that hold their message unencoded, for channels in the same process.
package struct MessageFrames: FrameMaker {
    private final class Box: Sendable {
        let message: [UInt8]
        init(_ message: [UInt8]) { self.message = message }
    }

    package init() {}

    package func frame(_ message: [UInt8]) -> Frame { Frame(storage: Box(message), byteCount: message.count) }

    /// Returns the message of a frame; nil if another maker made it.
    package static func message(of frame: Frame) -> [UInt8]? { (frame.storage as? Box)?.message }
}
