#if canImport(Glibc)
    import Glibc
    import Synchronization

    /// Counts the heap objects that Swift allocates on the calling thread, through the hook that the runtime has for instruments.
    enum Allocations {
        private typealias Allocate = @convention(c) (UnsafeRawPointer?, Int, Int) -> UnsafeMutableRawPointer?

        /// What the hook needs, outside of Swift's own heap and without lazy initialization.
        private struct State {
            var original: Allocate
            var thread: pthread_t
            var count: Int
        }

        // Safe because: written before the hook is set, under the lock; the hook writes only on the thread that counts.
        private nonisolated(unsafe) static var state: UnsafeMutablePointer<State>?
        private static let lock = Mutex(())

        /// - Returns: the number of objects that `body` allocated; nil where the runtime has no such hook.
        static func count(_ body: () -> Void) -> Int? {
            lock.withLock { _ in
                guard let slot = dlsym(nil, "_swift_allocObject"),
                    let isHooked = dlsym(nil, "_swift_enableSwizzlingOfAllocationAndRefCountingFunctions_forInstrumentsOnly")
                else { return nil }
                let function = slot.assumingMemoryBound(to: Allocate.self)
                let current = UnsafeMutablePointer<State>.allocate(capacity: 1)
                current.initialize(to: State(original: function.pointee, thread: pthread_self(), count: 0))
                state = current
                function.pointee = { metadata, size, mask in
                    guard let state = Allocations.state else { return nil }
                    if state.pointee.thread == pthread_self() { state.pointee.count += 1 }
                    return state.pointee.original(metadata, size, mask)
                }
                isHooked.storeBytes(of: 1, as: UInt8.self)
                body()
                let count = current.pointee.count
                isHooked.storeBytes(of: 0, as: UInt8.self)
                function.pointee = current.pointee.original
                // The state stays: another thread may be inside the hook.
                return count
            }
        }
    }
#endif
