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
