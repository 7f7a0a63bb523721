/// A certificate for localhost and 127.0.0.1, which signed itself, and its key, as PEM: made for tests, and worth nothing elsewhere.
package enum TestCertificate {
    package static let certificate = """
        -----BEGIN CERTIFICATE-----
        MIIBmjCCAUGgAwIBAgIUavXLwiKHDbhFX4Mt3Gy/sEqIwdwwCgYIKoZIzj0EAwIw
        FDESMBAGA1UEAwwJbG9jYWxob3N0MCAXDTI2MTEyMTEyNTMwMVoYDzIxMjYxMDI4
        MTI1MzAxWjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjO
        PQMBBwNCAAQQaObwpziVzxbkha7s7vOiHV29kMhDmnOmMi7ss+32Jfus9f/nTUrZ
        mh5Ey0r5QcXPF3oZoFELqPE8VYHqPS+mo28wbTAdBgNVHQ4EFgQUdjnh16YZgiQH
        Vf/C1slRiNFK4LIwHwYDVR0jBBgwFoAUdjnh16YZgiQHVf/C1slRiNFK4LIwDwYD
        VR0TAQH/BAUwAwEB/zAaBgNVHREEEzARgglsb2NhbGhvc3SHBH8AAAEwCgYIKoZI
        zj0EAwIDRwAwRAIgTsSfkc7yx/+dGkBgi36no4JtvuMnQHm1OqQqBEJoYaQCICt9
        wYdfgOFEeZacotUcwgfIxILM3rBJR+OCExgUSH/y
        -----END CERTIFICATE-----

        """
    package static let key = """
        -----BEGIN PRIVATE KEY-----
        MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQglg+tvGjtL9dkBtf7
        m0lDD1/HdrbwM8ruV51rTWuMS0ShRANCAAQQaObwpziVzxbkha7s7vOiHV29kMhD
        mnOmMi7ss+32Jfus9f/nTUrZmh5Ey0r5QcXPF3oZoFELqPE8VYHqPS+m
        -----END PRIVATE KEY-----

        """
    /// Another one for the same names, which signed itself too.
    package static let stranger = """
        -----BEGIN CERTIFICATE-----
        MIIBmzCCAUGgAwIBAgIUE5JhO9YbgdBb8TVFtltv4juKCc4wCgYIKoZIzj0EAwIw
        FDESMBAGA1UEAwwJbG9jYWxob3N0MCAXDTI2MTEyMzIzNDgyOFoYDzIxMjYxMDMw
        MjM0ODI4WjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjO
        PQMBBwNCAASJ0d/HrqgKoG10FJa+mXLofwZOIKBAZtG7kiGV10MXX+Wd08l1WLBZ
        nT2r1cXpQOAHDtsqsTDDjdOXzhhj+i1Co28wbTAdBgNVHQ4EFgQUczP+fT5m2lpG
        42kryqaAOPqafwswHwYDVR0jBBgwFoAUczP+fT5m2lpG42kryqaAOPqafwswDwYD
        VR0TAQH/BAUwAwEB/zAaBgNVHREEEzARgglsb2NhbGhvc3SHBH8AAAEwCgYIKoZI
        zj0EAwIDSAAwRQIhAOmPeV1p8jkgC0KifAA0VTpamBevT2GQm3tGA+6oB3cxAiA8
        DFWGPj1324v8FyZjctk6a8ebggmMaucfY+AQlne7vQ==
        -----END CERTIFICATE-----

        """
    package static let strangerKey = """
        -----BEGIN PRIVATE KEY-----
        MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgWWJd5wYzA0xEqQDM
        42aO1Ha0Aq8CZ6qLCSMg5zuKMb+hRANCAASJ0d/HrqgKoG10FJa+mXLofwZOIKBA
        ZtG7kiGV10MXX+Wd08l1WLBZnT2r1cXpQOAHDtsqsTDDjdOXzhhj+i1C
        -----END PRIVATE KEY-----

        """
}
