extension RealmCore {
    /// Whether what the app was told a moment ago may be gone with the next read.
    var isFleeting: Bool { floats && autorefresh && !isWriting }

    /// Takes note of how many elements the app is told that a collection has: it may go through them by index while the Realm moves on.
    func count(_ count: Int) -> Int {
        if isFleeting { told = max(told, count) }
        return count
    }

    /// Whether the app may believe that a collection has an element at an index. Of which one is not kept: every access to a property
    /// makes another.
    func hasTold(of index: Int) -> Bool { isFleeting && index >= 0 && index < told }
}
