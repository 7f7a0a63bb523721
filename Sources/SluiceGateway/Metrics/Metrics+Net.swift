import SluiceNet

extension Metrics {
    /// Returns an observer that counts and logs the connections and requests that the client port rejects.
    func refusals(loggedBy log: RefusalLog) -> @Sendable (NetRefusal) -> Void {
        let numbers = Dictionary(uniqueKeysWithValues: NetRefusal.allCases.map { ($0, number(.netRefusals, label: $0.rawValue)) })
        return { reason in
            numbers[reason]?.add()
            log.note(reason)
        }
    }
}
