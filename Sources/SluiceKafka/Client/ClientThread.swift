import Dispatch
import SluiceCore

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#else
    import Darwin
#endif

/// A dedicated thread for blocking calls, so that they never hold a thread of the cooperative pool.
enum ClientThread {
    /// Runs `body` on a new thread, which ends with it.
    ///
    /// - Parameter name: The purpose of the thread, for the error.
    /// - Throws: `internalError` if the system cannot create a thread.
    static func start(name: String, _ body: @escaping @Sendable () -> Void) throws {
        let work = ThreadBody(body)
        let context = unsafe Unmanaged.passRetained(work)
        var thread = pthread_t()
        let result = unsafe pthread_create(&thread, nil, runThreadBody, context.toOpaque())
        guard result == 0 else {
            unsafe context.release()
            throw SluiceError(
                .internalError, "The system could not create a thread for \(name).", fix: "Raise the limit of threads.",
                cause: .system(errno: result, text: unsafe String(cString: strerror(result))))
        }
        pthread_detach(thread)
    }
}

private final class ThreadBody: Sendable {
    let body: @Sendable () -> Void

    init(_ body: @escaping @Sendable () -> Void) { self.body = body }
}

private func runThreadBody(_ context: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
    guard let context = unsafe context else { return nil }
    let work = unsafe Unmanaged<ThreadBody>.fromOpaque(context).takeRetainedValue()
    work.body()
    return nil
}

/// A serial queue for blocking calls. Callers await the result without holding a thread of the cooperative pool.
struct BlockingQueue: Sendable {
    private let queue: DispatchQueue

    init(label: String) { queue = DispatchQueue(label: label) }

    func run<Value: Sendable>(_ body: @escaping @Sendable () throws -> Value) async throws -> Value {
        try await withCheckedThrowingContinuation { continuation in
            queue.async { continuation.resume(with: Result(catching: body)) }
        }
    }
}
