import Dispatch
import Synchronization
import Testing

@testable import SluiceSDK

@Suite struct `The share of a download` {
    @Test(arguments: [0, 1, 10, 1_000, 1_000_000] as [UInt64]) func `grows with the rows, whatever was expected, and stays below 1`(
        expected: UInt64
    ) {
        var last = -1.0
        for rows in [0, 1, 2, 5, 9, 10, 11, 50, 999, 1_000, 1_001, 5_000, 1_000_000, 100_000_000] as [UInt64] {
            let share = DownloadProgress.share(rows, of: expected)
            #expect(share >= last && share < 1, "\(rows) of \(expected)")
            last = share
        }
    }

    @Test func `is nine tenths when as many rows have come as were expected`() {
        #expect(DownloadProgress.share(0, of: 200) == 0 && DownloadProgress.share(100, of: 200) == 0.45)
        #expect(DownloadProgress.share(200, of: 200) == 0.9 && DownloadProgress.share(400, of: 200) == 0.95)
    }
}

@Suite(.timeLimit(.minutes(1))) struct `The progress of a download` {
    /// What one listener was told, in the order of the calls.
    private final class Steps: Sendable {
        let token = Sent(NotificationToken())
        let (stream, continuation) = AsyncStream<Double>.makeStream(bufferingPolicy: .bufferingOldest(64))

        func listener(_ mode: SluiceSDK.SyncSession.ProgressMode) -> ProgressListener {
            ProgressListener(mode, token.content) { [continuation] step in
                continuation.yield(step.progressEstimate)
                if step.isTransferComplete, mode == .forCurrentlyOutstandingWork { continuation.finish() }
            }
        }
    }

    @Test func `is over for a set that the server has answered before the file said so`() async {
        let (progress, steps) = (DownloadProgress(), Steps())
        progress.ended(version: 1)
        progress.ended(version: 2)
        // The file was looked at before.
        progress.add(steps.listener(.forCurrentlyOutstandingWork), pending: 2)
        #expect(await steps.stream.reduce(into: []) { $0.append($1) } == [1])
    }

    @Test func `begins with the first rows for a set that the server has not answered`() async {
        let (progress, steps) = (DownloadProgress(), Steps())
        progress.ended(version: 1)
        progress.add(steps.listener(.forCurrentlyOutstandingWork), pending: 2)
        progress.reached(version: 2, rows: 5, of: 10)
        progress.ended(version: 2)
        #expect(await steps.stream.reduce(into: []) { $0.append($1) } == [0.45, 1])
    }

    @Test func `goes on with later changes for whoever listens for good, and for no other`() async {
        let (progress, always, once) = (DownloadProgress(), Steps(), Steps())
        progress.ended(version: 1)
        progress.add(always.listener(.reportIndefinitely), pending: nil)
        progress.receiving(1)
        progress.received()
        progress.receiving(10)
        progress.receiving(20)
        progress.received()
        // It waits for a set that has not begun to come: changes of the one before are not its end.
        progress.add(once.listener(.forCurrentlyOutstandingWork), pending: 2)
        progress.receiving(1)
        progress.received()
        progress.reached(version: 2, rows: 5, of: 10)
        // While the set comes its end is the end.
        progress.receiving(1)
        progress.received()
        progress.ended(version: 2)
        let told = await always.stream.prefix(9).reduce(into: []) { $0.append($1) }
        #expect(told == [1, 0.9, 1, 0.99, 1, 0.9, 1, 0.45, 1])
        #expect(await once.stream.reduce(into: []) { $0.append($1) } == [0.45, 1])
    }

    @Test func `comes to its end for whoever begins to listen while it does`() async throws {
        for _ in 0..<500 {
            let (progress, steps) = (DownloadProgress(), Steps())
            progress.reached(version: 1, rows: 5, of: 10)
            let meeting = Meeting()
            async let added: Void = onThread {
                meeting.meet(1)
                progress.add(steps.listener(.forCurrentlyOutstandingWork), pending: 1)
            }
            async let ended: Void = onThread {
                meeting.meet(1)
                progress.ended(version: 1)
            }
            _ = try await (added, ended)
            let told = await steps.stream.reduce(into: []) { $0.append($1) }
            try #require(told == [1] || told == [0.45, 1], "\(told)")
        }
    }
}

@Suite(.timeLimit(.minutes(1))) struct `The progress of an opening` {
    private final class Told: Sendable {
        private let all = Mutex<[Double]>([])
        let goesOn = DispatchSemaphore(value: 0)
        let hasGoneOn = DispatchSemaphore(value: 0)
        var steps: [Double] { all.withLock { $0 } }
        func add(_ step: Double) { all.withLock { $0.append(step) } }
    }

    @Test func `never goes back, whoever begins to listen while it goes on`() async throws {
        let (progress, told) = (OpeningProgress(), Told())
        async let reached: Void = onThread {
            told.goesOn.wait()
            progress.reached(0.5)
            told.hasGoneOn.signal()
        }
        async let added: Void = onThread {
            progress.add { step in
                if told.steps.isEmpty, step.progressEstimate == 0 {
                    // The next step comes while the first is being told.
                    told.goesOn.signal()
                    _ = told.hasGoneOn.wait(timeout: .now() + .milliseconds(200))
                }
                told.add(step.progressEstimate)
            }
        }
        _ = try await (reached, added)
        #expect(told.steps == [0, 0.5])
    }
}
