package import SluiceCore
import Synchronization

/// Reads a part of a page whose source may hang. Each caller gets an answer in time. Concurrent callers share one read.
package final class PartReader<Value: Sendable>: Sendable {
    package typealias Answer = Result<Value, SluiceError>

    private struct State {
        var task: Task<Void, Never>?
        var waiting: [UInt64: AsyncStream<Answer>.Continuation] = [:]
        var numbers: UInt64 = 0
    }

    private let part: String
    private let patience: UInt64
    private let environment: any Environment
    private let ask: @Sendable () async throws -> Value
    private let state = Mutex(State())

    /// - Parameters:
    ///   - part: The subject of the error's message, as the start of a sentence.
    ///   - patience: The time limit in nanoseconds. After it the answer is `timeout`.
    ///   - ask: The read, which is cancelled when its last caller leaves. It is not called again until it has ended.
    package init(
        _ part: String, patience: UInt64, environment: any Environment, ask: @escaping @Sendable () async throws -> Value
    ) {
        self.part = part
        self.patience = patience
        self.environment = environment
        self.ask = ask
    }

    package func read() async -> Answer {
        let (answers, teller) = AsyncStream.makeStream(of: Answer.self, bufferingPolicy: .bufferingOldest(1))
        let number = join(teller)
        let alarm = Task { [environment, patience, late] in  // Unstructured because: callers must not wait for a cancelled read.
            guard (try? await environment.sleep(nanoseconds: patience)) != nil else { return }
            // Only this caller times out; the read continues for the others.
            teller.yield(.failure(late))
        }
        defer {
            alarm.cancel()
            leave(number)
        }
        for await answer in answers { return answer }
        return .failure(late)
    }

    private var late: SluiceError {
        SluiceError(.timeout, "\(part) could not be read within \(patience / 1_000_000_000) s.", fix: "Check PostgreSQL and the log.")
    }

    private func join(_ teller: AsyncStream<Answer>.Continuation) -> UInt64 {
        state.withLock { state in
            state.numbers += 1
            state.waiting[state.numbers] = teller
            begin(&state)
            return state.numbers
        }
    }

    private func begin(_ state: inout State) {
        guard state.task == nil else { return }
        state.task = Task { await self.work() }  // Unstructured because: the read serves all callers, even if the first one leaves.
    }

    /// Removes a caller. The last one cancels the read.
    private func leave(_ number: UInt64) {
        let task = state.withLock { state in
            state.waiting[number] = nil
            return state.waiting.isEmpty ? state.task : nil
        }
        task?.cancel()
    }

    private func work() async {
        var answer: Answer?
        do {
            answer = .success(try await ask())
        } catch {
            answer = ConsoleError.shown(error).map { .failure($0) } ?? (Task.isCancelled ? nil : .failure(late))
        }
        // One lock ends the read and takes its callers: a later caller starts a new read instead of missing this answer.
        let waiting = state.withLock { state -> [UInt64: AsyncStream<Answer>.Continuation] in
            state.task = nil
            guard answer != nil else {
                // The read was cancelled for callers that have left. New callers have joined since, so it starts again.
                if !state.waiting.isEmpty { begin(&state) }
                return [:]
            }
            defer { state.waiting = [:] }
            return state.waiting
        }
        if let answer { for teller in waiting.values { teller.yield(answer) } }
    }
}
