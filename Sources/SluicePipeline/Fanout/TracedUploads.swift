import SluiceCore
import SluicePorts

/// The uploads that a step of the watermark delivers, for the tracer. Exists only if there is one.
struct TracedUploads {
    /// The maximum number of uploads of a step that are reported.
    static let most = 1_024

    private let tracer: any UploadTracer
    private var origins: [Origin] = []
    private var start: UInt64 = 0

    init(_ tracer: any UploadTracer) { self.tracer = tracer }

    mutating func begin(_ environment: any Environment) {
        origins.removeAll(keepingCapacity: true)
        start = environment.monotonicNanoseconds()
    }

    /// Notes the upload of a change that concerns a session.
    mutating func note(_ change: DecodedChange) {
        // The rows of a transaction mostly follow each other, so the comparison with the last one removes most repetitions.
        guard let origin = change.origin, origin != origins.last, origins.count < Self.most else { return }
        origins.append(origin)
    }

    func end(_ environment: any Environment) {
        if !origins.isEmpty { tracer.delivered(origins, nanoseconds: environment.monotonicNanoseconds() - start) }
    }
}
