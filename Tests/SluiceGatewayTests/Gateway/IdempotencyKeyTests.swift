import GatewayTestSupport
import HTTPTypes
import Hummingbird
import Logging
import NIOCore
import SluiceCore
import SluiceNet
import SluicePostgres
import TestSupport
import Testing

@testable import SluiceGateway

/// What becomes of a key whose request comes to no end.
@Suite(.timeLimit(.minutes(2))) struct `The idempotency key of a request` {
    private static func with(_ body: @escaping @Sendable (IdempotencyKeys) async throws -> Void) async throws {
        try await RunningGateway.with { gateway in
            let pool = PostgresPool(gateway.conninfo, size: 2)
            let quiet = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
            try await body(IdempotencyKeys(store: IngestRequestStore(pool: pool), environment: SystemEnvironment(), logger: quiet))
            await pool.close()
        }
    }

    /// - Returns: nil while another request has the key.
    private static func begin(_ keys: IdempotencyKeys) async throws -> IdempotencyKeys.Lease? {
        var head = HTTPRequest(method: .post, scheme: "http", authority: "gateway", path: "/v1/ingest/Reading")
        head.headerFields[try #require(HTTPField.Name("Idempotency-Key"))] = "k"
        do {
            let request = try await keys.begin(Request(head: head, body: RequestBody(buffer: ByteBuffer())), user: "u", type: "Reading")
            guard case .first(let lease)? = request else { return nil }
            return lease
        } catch is ErrorResponse {
            return nil
        }
    }

    @Test func `whose answer never begins is given back`() async throws {
        try await Self.with { keys in
            var lease = try await Self.begin(keys)
            #expect(lease != nil)
            let busy = try await Self.begin(keys)
            #expect(busy == nil)
            withExtendedLifetime(lease) {}
            lease = nil
            let again = try await found { try await Self.begin(keys) }
            #expect(again != nil)
        }
    }

    @Test func `that is cancelled while it is claimed is given back`() async throws {
        try await Self.with { keys in
            for round in 0..<50 {
                let request = Task { _ = try? await Self.begin(keys) }
                // Each round cancels at a later moment of the claim.
                try await Task.sleep(for: .microseconds(100 * round))
                request.cancel()
                await request.value
                let lease = try await found(every: .milliseconds(1)) { try await Self.begin(keys) }
                try await #require(lease, "cancelled after \(100 * round) µs").release()
            }
        }
    }

    @Test(arguments: [false, true]) func `that is cancelled is ended all the same`(isAnswered: Bool) async throws {
        try await Self.with { keys in
            let lease = try #require(try await Self.begin(keys))
            let (cancelled, goesOn) = AsyncStream<Never>.makeStream()
            let request = Task {
                for await _ in cancelled {}
                var summary = IngestSummary()
                if !isAnswered { summary.failure = SluiceError(.connectionFailed, "The client has gone.") }
                await lease.finish(summary, body: [1])
            }
            request.cancel()
            goesOn.finish()
            await request.value
            let again = try await Self.begin(keys)
            // An answer is kept.
            #expect((again == nil) == isAnswered)
            withExtendedLifetime(lease) {}
        }
    }
}
