package import Dispatch

/// A serial Dispatch queue as an actor's executor. Blocking calls of the actor block this queue, but no thread of the cooperative
/// pool.
package final class QueueExecutor: SerialExecutor {
    package let queue: DispatchQueue

    package init(_ label: String) { queue = DispatchQueue(label: label) }

    package func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        let executor = unsafe asUnownedSerialExecutor()
        queue.async { unsafe job.runSynchronously(on: executor) }
    }

    package func asUnownedSerialExecutor() -> UnownedSerialExecutor { unsafe UnownedSerialExecutor(ordinary: self) }

    package func checkIsolated() { dispatchPrecondition(condition: .onQueue(queue)) }
}
