import NIOCore
package import SluiceCore
import SluiceNet

/// The time from a signal to the end of the process, and its stages.
///
/// | share of the time | until then |
/// |---|---|
/// | 20 % | `/ready` returns 503, and the gateway still serves, so that load balancers choose another one. It ends without a client |
/// | 60 % | the sessions close, spread evenly, each behind the answers to its messages |
/// | 75 % | sessions wait for these answers |
/// | 85 % | HTTP requests wait for theirs |
/// | 95 % | the services end, in order; the replication slot is free once the publisher has ended |
package struct GracePeriod: Hashable, Sendable {
    /// From the signal to the end of the process.
    package let milliseconds: Int64
    /// The longest time in which `/ready` returns 503 and the gateway still serves.
    let noticeMilliseconds: Int64
    /// The pace of the servers' shutdown, which follows the notice.
    let pace: ShutdownPace
    /// From the signal to the cancellation of the services that have not ended.
    let servicesMilliseconds: Int64

    /// The grace period of `sluice dev`, without a notice and without a spread.
    package static let immediate = GracePeriod(
        milliseconds: 4_500, notice: 0, pace: ShutdownPace(answers: .milliseconds(800), deadline: .seconds(1)), services: 3_000)

    /// - Throws: `configInvalid` outside of `Limits.graceRange`.
    package init(seconds: Int) throws(SluiceError) {
        guard Limits.graceRange.contains(seconds) else {
            let (least, most) = (Limits.graceRange.lowerBound, Limits.graceRange.upperBound)
            throw SluiceError(
                .configInvalid, "--grace-seconds \(seconds) is not from \(least) to \(most).", fix: "Give \(least) to \(most) seconds.")
        }
        let percent = Int64(seconds) * 10
        self.init(
            milliseconds: 100 * percent, notice: 20 * percent,
            pace: ShutdownPace(
                spread: .milliseconds(40 * percent), answers: .milliseconds(55 * percent), deadline: .milliseconds(65 * percent)),
            services: 95 * percent)
    }

    private init(milliseconds: Int64, notice: Int64, pace: ShutdownPace, services: Int64) {
        self.milliseconds = milliseconds
        noticeMilliseconds = notice
        self.pace = pace
        servicesMilliseconds = services
    }
}
