import SluiceCore
import SluiceWire

/// The errors that the state machine reports to the gateway, for operators.
extension SyncStateMachine {
    /// Reports an error to the gateway.
    /// - Parameter undone: the objects whose writes the replica undid because of the error. The first `Limits.reportedWrites` are named.
    mutating func report(_ error: SluiceError, undone: [ObjectKey] = [], changeset: UInt64 = 0) {
        var report = PBReportError()
        report.code = UInt32(error.code.rawValue)
        report.message = String(error.operatorText.prefix(2_000))
        report.writes = undone.prefix(Limits.reportedWrites).compactMap { PBReportedWrite(changeset: changeset, $0) }
        send(.reportError(report))
    }
}
