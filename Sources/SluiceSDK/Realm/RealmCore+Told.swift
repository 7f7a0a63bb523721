extension RealmCore {
    /// `true` if the next read may advance the Realm and change a count that the app has just read.
    var isFleeting: Bool { floats && autorefresh && !isWriting }

    /// Records the count of a collection that the app reads. The app may then access elements by index while the Realm advances.
    func count(_ count: Int) -> Int {
        if isFleeting { told = max(told, count) }
        return count
    }

    /// `true` if the app may have read a count above the index. The collection is not recorded: each property access creates a new one.
    func hasTold(of index: Int) -> Bool { isFleeting && index >= 0 && index < told }
}
