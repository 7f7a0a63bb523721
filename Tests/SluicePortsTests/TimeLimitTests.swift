import SluiceCore
import SluicePorts
import TestSupport
import Testing

@Suite struct `A time limit` {
    private struct Failure: Error {}

    @Test func `passes what comes in time, and what is thrown`() async throws {
        let environment = SystemEnvironment()
        #expect(try await environment.within(milliseconds: 60_000) { 5 } == 5)
        await #expect(throws: Failure.self) { try await environment.within(milliseconds: 60_000) { throw Failure() } }
    }

    @Test func `cancels what takes longer, and ends as it does`() async throws {
        let environment = SystemEnvironment()
        let wasCancelled = Watched(false)
        await #expect(throws: CancellationError.self) {
            try await environment.within(milliseconds: 5) {
                do { try await untilCancelled() } catch {
                    wasCancelled.change { $0 = true }
                    throw error
                }
            }
        }
        #expect(wasCancelled.value)
        // What answers its cancellation has an answer.
        let answer = try await environment.within(milliseconds: 5) {
            do { try await untilCancelled() } catch { return 7 }
            return 0
        }
        #expect(answer == 7)
    }

    @Test func `ends with its caller`() async throws {
        let call = Task { try await SystemEnvironment().within(milliseconds: 600_000) { try await untilCancelled() } }
        call.cancel()
        await #expect(throws: CancellationError.self) { try await call.value }
    }
}
