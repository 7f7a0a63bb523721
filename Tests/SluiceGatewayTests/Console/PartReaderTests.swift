import SluiceCore
import SluiceGateway
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(1))) struct `A part of a page` {
    private static let short: UInt64 = 100_000_000
    private static let long: UInt64 = 50_000_000_000

    /// Holds whoever asks until it is opened, whether they are cancelled or not.
    private final class Gate: Sendable {
        private let (opened, opener) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingOldest(1))
        let asked = Watched(0)

        func open() { opener.yield() }

        func ask() async -> Int {
            let number = asked.change { asked in
                asked += 1
                return asked
            }
            // Unstructured because: like a server that hangs, it does not hear of a cancellation.
            await Task { for await _ in opened { return } }.value
            return number
        }
    }

    @Test func `is what is answered, or the error`() async throws {
        let good = PartReader("It", patience: Self.long, environment: SystemEnvironment()) { 5 }
        #expect(try await good.read().get() == 5)
        let bad = PartReader<Int>("It", patience: Self.long, environment: SystemEnvironment()) {
            throw SluiceError(.postgresUnreachable, "Nobody is there.")
        }
        for _ in 0..<2 { #expect(await bad.read() == .failure(SluiceError(.postgresUnreachable, "Nobody is there."))) }
    }

    @Test func `is a named error when the answer does not come in time`() async throws {
        let gate = Gate()
        let reader = PartReader("The list", patience: Self.short, environment: SystemEnvironment()) { await gate.ask() }
        for _ in 0..<3 {
            guard case .failure(let error) = await reader.read() else {
                Issue.record("It has come.")
                return
            }
            #expect(error.code == .timeout && error.message.hasPrefix("The list could not be read within"))
        }
        #expect(gate.asked.value == 1, "what hangs is not asked again and again")
        gate.open()
    }

    @Test func `is asked for once for all who look at a time`() async throws {
        let gate = Gate()
        let reader = PartReader("It", patience: Self.long, environment: SystemEnvironment()) { await gate.ask() }
        async let first = reader.read()
        async let second = reader.read()
        try #require(await gate.asked.until { $0 > 0 })
        // The second may come after the first has its answer, and asks for itself then.
        gate.open()
        #expect(try await first.get() == 1)
        gate.open()
        #expect([1, 2].contains(try await second.get()))
    }

    @Test func `is cancelled when nobody waits for it any more`() async throws {
        let wasCancelled = Watched(false)
        let reader = PartReader("It", patience: Self.short, environment: SystemEnvironment()) {
            do { try await untilCancelled() } catch {
                wasCancelled.change { $0 = true }
                throw error
            }
        }
        guard case .failure = await reader.read() else {
            Issue.record("It has come.")
            return
        }
        #expect(await wasCancelled.until { $0 })
    }
}
