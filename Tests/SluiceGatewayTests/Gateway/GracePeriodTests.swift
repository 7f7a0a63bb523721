import NIOCore
import SluiceCore
import SluiceNet
import Testing

@testable import SluiceGateway

@Suite struct GracePeriodTests {
    @Test(arguments: Limits.graceRange)
    func `the stages follow each other and end before the process does`(seconds: Int) throws {
        let grace = try GracePeriod(seconds: seconds)
        let notice = grace.noticeMilliseconds * 1_000_000
        let ends = [
            notice, notice + grace.pace.spread.nanoseconds, notice + grace.pace.answers.nanoseconds,
            notice + grace.pace.deadline.nanoseconds, grace.servicesMilliseconds * 1_000_000, grace.milliseconds * 1_000_000,
        ]
        #expect(grace.milliseconds == Int64(seconds) * 1_000)
        #expect(ends.first ?? 0 > 0 && zip(ends, ends.dropFirst()).allSatisfy { $0 < $1 }, "\(ends)")
    }

    @Test(arguments: [0, -1, 601, Int.max, Int.min])
    func `a time out of range is an error that names the range`(seconds: Int) {
        let error = #expect(throws: SluiceError.self) { try GracePeriod(seconds: seconds) }
        #expect(error?.code == .configInvalid && error?.message.contains("1 to 600") == true, "\(String(describing: error))")
    }
}
